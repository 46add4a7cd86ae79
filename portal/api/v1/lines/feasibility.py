"""Validation of an order without ordering: ``POST /api/v1/vlls/validate``. Sizes in bytes, rates in bit/s."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.problem_details import entry
from portal.api.rest.permission_classes import caller
from portal.api.v1.lines.serializers import OrderAddSerializer, requested_order
from portal.core import clock
from portal.vll.quote import Quote, QuotedEnd, quote


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


def quote_json(quoted: Quote) -> dict[str, Any]:
    """Return the response of ``POST /api/v1/vlls/validate``."""
    selected = quoted.selected
    path = selected.path if selected else None
    return {
        "feasible": quoted.feasible,
        "reasons": [entry(refusal) for refusal in quoted.refusals],
        "transport": selected.transport.value if selected else None,
        "frame": selected.frame if selected else None,
        "required_ip_mtu": selected.required if selected else None,
        "path": None
        if path is None
        else {
            "family": path.family.value,
            "ip_mtu": path.path_mtu,
            "links": quoted.links,
        },
        "options": [
            {
                "transport": option.transport.value,
                "overhead": option.overhead,
                "largest_svc_mtu": option.largest_svc_mtu,
                "mpps_per_core": option.cost.mpps_per_core,
                "cycles_per_packet": option.cost.cycles_per_packet,
                "reasons": [entry(refusal) for refusal in option.barred],
            }
            for option in quoted.options
        ],
        "largest_svc_mtu": quoted.largest_svc_mtu,
        "a_end": _end(quoted.ends.get("a")),
        "z_end": _end(quoted.ends.get("z")),
        "routers": [asdict(router) for router in quoted.routers],
        "assumptions": [
            {"router": each.router.name, "about": each.what, "detail": each.sentence}
            for each in quoted.assumptions
        ],
        "waits": [asdict(wait) for wait in quoted.waits],
    }


def _end(end: QuotedEnd | None) -> dict[str, Any] | None:
    if end is None:
        return None
    return {
        "port": end.port.pk,
        "port_name": str(end.port),
        "speed_bps": end.port.speed_bps,
        "bookable_bps": end.port.bookable_bps,
        "oversubscription_percent": end.port.oversubscription_percent,
        "free_bps": end.free_bps,
        "max_frame": end.port.max_frame,
        "free_outer_vlans": end.vlans_free,
        "outer_vlans": end.vlans,
    }


class ValidateView(APIView):
    """The check of an order without placing it."""

    permission_classes = [IsAuthenticated]
    writes = False

    @extend_schema(request=OrderAddSerializer, responses={200: OUTLOOK})
    def post(self, request: Request) -> Response:
        """Check an order without placing it.

        The check changes nothing. The response has all reasons against the order.
        """
        order = requested_order(request.data)
        found = quote(user=caller(request), now=clock.now(), **order)
        return Response(quote_json(found))
