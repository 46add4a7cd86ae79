"""Parts of schemas that are written by hand, for responses without a serializer."""

from typing import Any

Schema = dict[str, Any]

COUNT: Schema = {"type": "integer", "minimum": 0}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
INSTANT: Schema = {"type": "string", "format": "date-time"}


def record(**members: Schema) -> Schema:
    """Return the schema of an object that has all of these members."""
    return {"type": "object", "required": list(members), "properties": members}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def about(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}
