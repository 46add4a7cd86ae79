"""The schema of ``POST /api/v1/vlls/validate``. Sizes in bytes, rates in bit/s."""

from typing import Any


def _object(properties: dict[str, Any], *, null: bool = False) -> dict[str, Any]:
    kind = ["object", "null"] if null else "object"
    return {"type": kind, "required": list(properties), "properties": properties}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_NUMBER = {"type": "integer", "minimum": 0}
_NUMBER_OR_NULL = {"type": ["integer", "null"], "minimum": 0}
_TEXT = {"type": "string"}
_REASONS = _list(_object({"field": _TEXT, "code": _TEXT, "detail": _TEXT, "facts": {"type": "object"}}))
_CORES = {"type": "number", "minimum": 0}


_END = _object(
    {
        "port": _NUMBER,
        "port_name": _TEXT,
        "speed_bps": _NUMBER,
        "bookable_bps": {
            **_NUMBER,
            "description": "The bandwidth that lines can book; above the speed of an oversubscribed port.",
        },
        "oversubscription_percent": {
            **_NUMBER_OR_NULL,
            "description": "`bookable_bps` in percent of the speed; null if it was set as a rate.",
        },
        "free_bps": {
            **_NUMBER,
            "description": "The bandwidth that can still be booked at the present speed of the link.",
        },
        "max_frame": _NUMBER,
        "free_outer_vlans": {
            **_NUMBER,
            "description": "The number of outer VLANs that are free for this tagging.",
        },
        "outer_vlans": {**_list(_NUMBER), "description": "The first free outer VLANs."},
    },
    null=True,
)
OUTLOOK: dict[str, Any] = _object(
    {
        "feasible": {
            "type": "boolean",
            "description": "Whether the order would be accepted.",
        },
        "reasons": {
            **_REASONS,
            "description": "All reasons against the order, as in the errors of a problem document.",
        },
        "transport": {
            "type": ["string", "null"],
            "description": "The transport that the portal would use.",
        },
        "frame": _NUMBER_OR_NULL,
        "required_ip_mtu": _NUMBER_OR_NULL,
        "path": _object(
            {
                "family": {"enum": [4, 6]},
                "ip_mtu": _NUMBER_OR_NULL,
                "links": _list(
                    _object({"name": _TEXT, "ip_mtu": _NUMBER_OR_NULL, "backup": {"type": "boolean"}})
                ),
            },
            null=True,
        ),
        "options": _list(
            _object(
                {
                    "transport": _TEXT,
                    "overhead": _NUMBER,
                    "largest_svc_mtu": _NUMBER_OR_NULL,
                    "mpps_per_core": {"type": "number"},
                    "cycles_per_packet": {"type": "number"},
                    "reasons": {**_REASONS, "description": "Why the two routers cannot use it."},
                }
            )
        ),
        "largest_svc_mtu": {**_NUMBER_OR_NULL, "description": "With the best option."},
        "a_end": _END,
        "z_end": _END,
        "routers": {
            **_list(
                _object(
                    {
                        "router": _TEXT,
                        "bookable_cores": _CORES,
                        "booked_cores": _CORES,
                        "free_cores": _CORES,
                        "free_bps": {
                            **_NUMBER,
                            "description": "The bandwidth that the free cores can carry with this transport.",
                        },
                    }
                )
            ),
            "description": "The packet capacity of the routers' cores: in total, booked by lines, and free.",
        },
        "assumptions": {
            **_list(_object({"router": _TEXT, "about": _TEXT, "detail": _TEXT})),
            "description": "Declared values that the check uses, because no agent has reported them yet.",
        },
        "waits": {
            **_list(_object({"code": _TEXT, "message": _TEXT})),
            "description": "Why the line would not be built immediately after its order.",
        },
    }
)
