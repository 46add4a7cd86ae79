"""The schemas of throughput responses. They are rows of numbers, for which no serializer exists."""

from typing import Any

from portal.telemetry.graph_units import Unit

_END = {
    "type": "array",
    "description": "Start of the bucket (epoch seconds), in, out; null if nothing was counted.",
    "items": {
        "type": "array",
        "items": {"type": ["number", "null"]},
        "minItems": 3,
        "maxItems": 3,
        "example": [1_790_000_100, 412_000_000.0, 398_500_000.0],
    },
}
_P95_END = {
    "type": "object",
    "description": "95th percentiles of 5-minute buckets, and the number of missing buckets.",
}
THROUGHPUT: dict[str, Any] = {
    "type": "object",
    "required": ["step_s", "unit", "a_end", "z_end", "p95", "missing"],
    "properties": {
        "step_s": {"type": "integer", "minimum": 1, "description": "Length of a bucket in seconds."},
        "unit": {"enum": [unit.value for unit in Unit]},
        "a_end": _END,
        "z_end": _END,
        "p95": {
            "type": "object",
            "required": ["a_end", "z_end"],
            "properties": {"a_end": _P95_END, "z_end": _P95_END},
        },
        "missing": {
            "type": "integer",
            "minimum": 0,
            "description": "The number of buckets in which an end was not counted.",
        },
        "simulated": {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."},
    },
}
PORT_THROUGHPUT: dict[str, Any] = {
    "type": "object",
    "required": ["step_s", "unit", "port", "lines", "missing", "simulated"],
    "properties": {
        "step_s": {"type": "integer", "minimum": 300, "description": "Length of a bucket in seconds."},
        "unit": {"enum": [unit.value for unit in Unit]},
        "port": _END,
        "lines": {"type": "integer", "minimum": 0, "description": "The number of ends of lines in the sum."},
        "missing": {
            "type": "integer",
            "minimum": 0,
            "description": "The number of buckets in which no line was counted.",
        },
        "simulated": {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."},
    },
}
INSTANT = {
    "oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "format": "date-time"}],
    "description": "Epoch seconds, or an ISO 8601 time with a zone.",
}
