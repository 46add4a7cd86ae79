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
        "bookable_bps": {**_NUMBER, "description": "More than the speed where the port is oversubscribed."},
        "oversubscription_percent": {
            **_NUMBER_OR_NULL,
            "description": "Which part of the speed that is; null where somebody named a rate.",
        },
        "free_bps": {**_NUMBER, "description": "What can still be booked at the present speed of the link."},
        "max_frame": _NUMBER,
        "free_outer_vlans": {**_NUMBER, "description": "How many outer VLANs are free for this tagging."},
        "outer_vlans": {**_list(_NUMBER), "description": "The first of the free outer VLANs."},
    },
    null=True,
)
OUTLOOK: dict[str, Any] = _object(
    {
        "feasible": {
            "type": "boolean",
            "description": "Whether an order of this would be accepted.",
        },
        "reasons": {
            **_REASONS,
            "description": "Everything that is in the way, as in the errors of a problem document.",
        },
        "transport": {"type": ["string", "null"], "description": "What would be taken."},
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
                    "reasons": {**_REASONS, "description": "Why the two routers cannot do it."},
                }
            )
        ),
        "largest_svc_mtu": {**_NUMBER_OR_NULL, "description": "With the best option there is."},
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
                        "free_bps": {**_NUMBER, "description": "What would fit with this transport."},
                    }
                )
            ),
            "description": "What the routers' cores still carry, by the packets of the lines booked on them.",
        },
        "assumptions": {
            **_list(_object({"router": _TEXT, "about": _TEXT, "detail": _TEXT})),
            "description": "What is taken as it is declared, because no agent has reported it yet.",
        },
        "waits": {
            **_list(_object({"code": _TEXT, "message": _TEXT})),
            "description": "What an order would wait for, although it is accepted.",
        },
    }
)
