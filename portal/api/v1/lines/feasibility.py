"""Validation of an order without ordering: ``POST /api/v1/vlls/validate``. Sizes in bytes, rates in bit/s."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.schemas import COUNT, COUNT_OR_NULL, FLAG, TEXT, Schema, about, array, or_null, record
from portal.api.problem_details import entry
from portal.api.rest.access_control import caller
from portal.api.v1.lines.serializers import OrderAddSerializer, requested_order
from portal.core import clock
from portal.vll.quote import Quote, QuotedEnd, quote

_REASONS = array(record(field=TEXT, code=TEXT, detail=TEXT, facts={"type": "object"}))
_CORES: Schema = {"type": "number", "minimum": 0}
_END = record(
    port=COUNT,
    port_name=TEXT,
    speed_bps=COUNT,
    bookable_bps=about(
        COUNT, "The bandwidth that lines can book; above the speed of an oversubscribed port."
    ),
    oversubscription_percent=about(
        COUNT_OR_NULL, "`bookable_bps` in percent of the speed; null if it was set as a rate."
    ),
    free_bps=about(COUNT, "The bandwidth that can still be booked at the present speed of the link."),
    max_frame=COUNT,
    free_outer_vlans=about(COUNT, "The number of outer VLANs that are free for this tagging."),
    outer_vlans=about(array(COUNT), "The first free outer VLANs."),
)
_OPTION = record(
    transport=TEXT,
    overhead=COUNT,
    largest_svc_mtu=COUNT_OR_NULL,
    mpps_per_core={"type": "number"},
    cycles_per_packet={"type": "number"},
    reasons=about(_REASONS, "Why the two routers cannot use it."),
)
_ROUTER = record(
    router=TEXT,
    bookable_cores=_CORES,
    booked_cores=_CORES,
    free_cores=_CORES,
    free_bps=about(COUNT, "The bandwidth that the free cores can carry with this transport."),
)
OUTLOOK = record(
    feasible=about(FLAG, "Whether the order would be accepted."),
    reasons=about(_REASONS, "All reasons against the order, as in the errors of a problem document."),
    transport=about(or_null(TEXT), "The transport that the portal would use."),
    frame=COUNT_OR_NULL,
    required_ip_mtu=COUNT_OR_NULL,
    path=or_null(
        record(
            family={"enum": [4, 6]},
            ip_mtu=COUNT_OR_NULL,
            links=array(record(name=TEXT, ip_mtu=COUNT_OR_NULL, backup=FLAG)),
        )
    ),
    options=array(_OPTION),
    largest_svc_mtu=about(COUNT_OR_NULL, "With the best option."),
    a_end=or_null(_END),
    z_end=or_null(_END),
    routers=about(
        array(_ROUTER), "The packet capacity of the routers' cores: in total, booked by lines, and free."
    ),
    assumptions=about(
        array(record(router=TEXT, about=TEXT, detail=TEXT)),
        "Declared values that the check uses, because no agent has reported them yet.",
    ),
    waits=about(
        array(record(code=TEXT, message=TEXT)),
        "Why the line would not be built immediately after its order.",
    ),
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
