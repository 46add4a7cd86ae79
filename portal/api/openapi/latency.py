"""The schema of latency answers: rows of numbers, which no serializer describes."""

from typing import Any

LATENCY: dict[str, Any] = {
    "type": "object",
    "required": ["step_s", "round_trips", "missing", "simulated"],
    "properties": {
        "step_s": {"type": "integer", "minimum": 1, "description": "Length of a bucket in seconds."},
        "round_trips": {
            "type": "array",
            "description": "Start of the bucket (epoch seconds); the shortest round trip, their mean and the"
            " longest, in µs, null where none came back; packets that did not come back, null where none was"
            " sent.",
            "items": {
                "type": "array",
                "items": {"type": ["integer", "null"]},
                "minItems": 5,
                "maxItems": 5,
                "example": [1_790_000_100, 710, 805, 1200, 0],
            },
        },
        "missing": {
            "type": "integer",
            "minimum": 0,
            "description": "Buckets of the line's time in service in which nothing was sent.",
        },
        "simulated": {"type": "boolean", "description": "Whether any of it comes from a stand-in for VPP."},
    },
}
