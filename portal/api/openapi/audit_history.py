"""The schema of a history. The members of ``before`` and ``after`` are the changed columns of any table."""

from typing import Any

_COLUMNS = {"type": ["object", "null"], "description": "The changed columns, by name."}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_BY = ("username", "token", "task", "request_id")
HISTORY: dict[str, Any] = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["at", "object", "operation", "by", "before", "after"],
                "properties": {
                    "at": {"type": "string", "format": "date-time"},
                    "object": {"type": "string"},
                    "operation": {"type": "string"},
                    "by": {
                        "type": "object",
                        "properties": dict.fromkeys(_BY, _TEXT_OR_NULL),
                    },
                    "before": _COLUMNS,
                    "after": _COLUMNS,
                },
            },
        },
    },
}
