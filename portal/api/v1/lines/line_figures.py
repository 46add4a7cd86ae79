"""The figures of lines, ports, routers and links: months, throughput, losses."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.csv_response import CsvRenderer, csv_response
from portal.api.rest.permission_classes import NocOnly, caller
from portal.api.rest.strict_fields import validated
from portal.api.v1.lines.throughput import (
    AVAILABILITY,
    INSTANT,
    LINK_LOSSES,
    LOSS,
    PERCENTILES,
    POLICING,
    PORT_THROUGHPUT,
    ROUTER_LOSSES,
    UNITS,
    AvailabilityQuerySerializer,
    LossesQuerySerializer,
    PortThroughputQuerySerializer,
    RangeQuerySerializer,
    ThroughputQuerySerializer,
)
from portal.core import clock
from portal.core.db.replica import from_replica
from portal.inventory.models import BackboneLink, Port, Router
from portal.telemetry.availability import PERIODS, availability
from portal.telemetry.buckets import STEPS_S
from portal.telemetry.line_losses import end_drops, frame_loss, policed
from portal.telemetry.monthly_figures import frozen_percentiles, months_of
from portal.telemetry.router_losses import link_losses, router_losses
from portal.telemetry.throughput import port_throughput, throughput
from portal.vll.models import Vll

_TIMES = ("availability", "known_ratio", "up_s", "down_s", "unknown_s", "maintenance_s")
_LOSS = ("sent", "policed", "delivered", "loss_ratio", "bound_ratio")
_P95 = {"in": "in_bps", "out": "out_bps", "max": "max_bps", "missing": "missing"}


HEADING = [
    *("month", "vll", "customer", "description"),
    *_TIMES,
    *(f"{way}_{name}" for way in ("a_to_z", "z_to_a") for name in _LOSS),
    *("compared", "compared_missing", "compared_step_s"),
    *(f"{end}_p95_{name}" for end in ("a", "z") for name in _P95.values()),
]


def month_row(vll: Vll, figures: dict[str, Any]) -> list[object]:
    """Return the figures of a VLL in a month as a row with the columns ``HEADING``.

    Times are in seconds, counts in frames, rates in bit/s. A value that was not measured is None.
    """
    frozen = figures["p95"] or {}
    return [
        figures["month"],
        str(vll.pk),
        vll.customer.name,
        vll.description,
        *(figures["availability"][name] for name in _TIMES),
        *(figures["loss"][way][name] for way in ("a_to_z", "z_to_a") for name in _LOSS),
        figures["loss"]["compared"],
        figures["loss"]["missing"],
        figures["loss"]["step_s"],
        *(frozen.get(f"{end}_end", {}).get(name) for end in ("a", "z") for name in _P95),
    ]


_RANGE = [
    OpenApiParameter("from", INSTANT, description="Default: 30 days before `to`."),
    OpenApiParameter("to", INSTANT, description="Default: now."),
]


class ThroughputCsvView(APIView):
    """Throughput of a VLL as CSV. A cell without a measured value is empty."""

    permission_classes = [IsAuthenticated]
    renderer_classes = [CsvRenderer, JSONRenderer]

    @extend_schema(
        parameters=[
            OpenApiParameter("from", INSTANT, description="Default: an hour before `to`."),
            OpenApiParameter("to", INSTANT, description="Default: now."),
            OpenApiParameter(
                "step", int, enum=STEPS_S, description="Seconds; by default chosen by the range."
            ),
            OpenApiParameter("unit", str, enum=UNITS, description="The unit of the counts; default: bits."),
        ],
        responses={(200, "text/csv"): {"type": "string"}},
    )
    def get(self, request: Request, pk: UUID) -> StreamingHttpResponse:
        vll, query = _vll(request, pk), _query(ThroughputQuerySerializer, request)
        found = from_replica(request, lambda: throughput(vll=vll, **query))
        return csv_response(f"throughput-{vll.pk}.csv", _rows(vll, found))


class PercentilesView(APIView):
    """The final 95th percentiles of each month. A month is final when no more samples of it can arrive."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: PERCENTILES})
    def get(self, request: Request, pk: UUID) -> Response:
        vll = _vll(request, pk)
        return Response({"results": from_replica(request, lambda: frozen_percentiles(vll_id=vll.pk))})


class MonthsCsvView(APIView):
    """Availability, frame loss and 95th percentiles by month as CSV. A cell without a measured value is
    empty.
    """

    permission_classes = [IsAuthenticated]
    renderer_classes = [CsvRenderer, JSONRenderer]

    @extend_schema(responses={(200, "text/csv"): {"type": "string"}})
    def get(self, request: Request, pk: UUID) -> StreamingHttpResponse:
        vll = _vll(request, pk)
        months = from_replica(request, lambda: months_of(vll=vll, now=clock.now()))
        rows = (month_row(vll, figures) for figures in months)
        return csv_response(f"months-{vll.pk}.csv", chain([HEADING], rows))


class AvailabilityView(APIView):
    """Availability of a VLL while it was in service, from its oper status, by day or month (UTC)."""

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=[*_RANGE, OpenApiParameter("period", str, enum=PERIODS)], responses={200: AVAILABILITY}
    )
    def get(self, request: Request, pk: UUID) -> Response:
        vll, query = _vll(request, pk), _query(AvailabilityQuerySerializer, request)
        return Response(from_replica(request, lambda: availability(vll=vll, **query)))


class LossView(APIView):
    """Frame loss of a VLL in both directions, from the counters of both ends, and the frames that its routers
    dropped.

    Only times in which the frames of both ends were counted without a gap contribute to the loss.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(parameters=_RANGE, responses={200: LOSS})
    def get(self, request: Request, pk: UUID) -> Response:
        vll, query = _vll(request, pk), _query(RangeQuerySerializer, request)
        lost, drops = from_replica(
            request, lambda: (frame_loss(vll=vll, **query), end_drops(vll=vll, **query))
        )
        return Response(lost | {f"{side}_end": found.as_document() for side, found in drops.items()})


class PolicingView(APIView):
    """The traffic that the policers at each end of a VLL forwarded and dropped."""

    permission_classes = [IsAuthenticated]

    @extend_schema(parameters=_RANGE, responses={200: POLICING})
    def get(self, request: Request, pk: UUID) -> Response:
        vll, query = _vll(request, pk), _query(RangeQuerySerializer, request)
        return Response(from_replica(request, lambda: policed(vll=vll, **query)))


def _vll(request: Request, pk: UUID) -> Vll:
    vll: Vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
    return vll


def _query(kind: type[Any], request: Request) -> dict[str, Any]:
    return validated(kind, request.query_params, context={"now": clock.now()})


def _rows(vll: Vll, found: dict[str, Any]) -> Iterator[list[object]]:
    yield ["start", "vll", "description", "unit", "a_in", "a_out", "z_in", "z_out"]
    for a, z in zip(found["a_end"], found["z_end"], strict=True):
        start = datetime.fromtimestamp(a[0], tz=UTC).isoformat()
        yield [start, str(vll.pk), vll.description, found["unit"], *a[1:], *z[1:]]


_PARAMETERS = [
    OpenApiParameter("from", INSTANT, description="Default: a day before `to`."),
    OpenApiParameter("to", INSTANT, description="Default: now."),
    OpenApiParameter("step", int, enum=STEPS_S, description="Seconds; by default chosen by the range."),
]


class RouterLossesView(APIView):
    """The losses of a router and its interfaces."""

    permission_classes = [NocOnly]

    @extend_schema(parameters=_PARAMETERS, responses={200: ROUTER_LOSSES})
    def get(self, request: Request, pk: int) -> Response:
        """The losses of a router: losses of its interfaces, packets for unknown tunnels, fragments, and free
        buffers.
        """
        return Response(router_losses(router=get_object_or_404(Router, pk=pk), **_losses_read(request)))


class LinkLossesView(APIView):
    """The losses of both sides of a backbone link."""

    permission_classes = [NocOnly]

    @extend_schema(parameters=_PARAMETERS, responses={200: LINK_LOSSES})
    def get(self, request: Request, pk: int) -> Response:
        """The losses of both interfaces of a backbone link."""
        return Response(link_losses(link=get_object_or_404(BackboneLink, pk=pk), **_losses_read(request)))


def _losses_read(request: Request) -> dict[str, Any]:
    return validated(LossesQuerySerializer, request.query_params, context={"now": clock.now()})


class PortThroughputView(APIView):
    """Throughput of a port, in and out: the sum over the lines that end there now."""

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=[
            OpenApiParameter("from", INSTANT, description="Default: a day before `to`."),
            OpenApiParameter("to", INSTANT, description="Default: now."),
            OpenApiParameter("unit", str, enum=UNITS, description="The unit of the counts; default: bits."),
        ],
        responses={200: PORT_THROUGHPUT},
    )
    def get(self, request: Request, pk: int) -> Response:
        port = get_object_or_404(Port.objects.visible_to(caller(request)), pk=pk)
        context = {"now": clock.now()}
        query = validated(PortThroughputQuerySerializer, request.query_params, context=context)
        return Response(from_replica(request, lambda: port_throughput(port=port, **query)))
