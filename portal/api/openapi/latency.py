"""The schema of latency responses. They are rows of numbers, for which no serializer exists."""

from typing import Any

LATENCY: dict[str, Any] = {
    "type": "object",
    "required": ["step_s", "round_trips", "missing", "simulated"],
    "properties": {
        "step_s": {"type": "integer", "minimum": 1, "description": "Length of a bucket in seconds."},
        "round_trips": {
            "type": "array",
            "description": "Start of the bucket (epoch seconds); shortest, mean and longest round-trip time"
            " in µs, null if no packet returned; number of lost packets, null if none was sent.",
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
            "description": "The number of buckets in which the line was in service and no packet was sent.",
        },
        "simulated": {"type": "boolean", "description": "Whether any value comes from a stand-in for VPP."},
    },
}
