"""The figures of lines, ports, routers and links: months, throughput, latency, losses."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.access_control import NocOnly, caller
from portal.api.rest.csv_response import CsvRenderer, csv_response, owners_of
from portal.api.rest.lists import MonthField, MonthFilters, NewestVllFirst, parts_of
from portal.api.rest.request_bodies import validated
from portal.api.rest.views import confirmed
from portal.api.v1.lines import figure_schemas as schemas
from portal.api.v1.lines.serializers import visible_line
from portal.core import clock
from portal.core.db.replica import from_replica, will_be_streamed
from portal.inventory.models import BackboneLink, Port, Router
from portal.telemetry.availability import PERIODS, availability
from portal.telemetry.buckets import STEPS_S
from portal.telemetry.line_losses import end_drops, frame_loss, policed
from portal.telemetry.monthly_figures import frozen_percentiles, month_of, months_of
from portal.telemetry.round_trips import STEPS_S as LATENCY_STEPS_S
from portal.telemetry.round_trips import latency
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


def _query(kind: type[schemas.RangeQuery], request: Request) -> dict[str, Any]:
    return validated(kind, request.query_params)


def _of_line(
    request: Request, vll: Vll, kind: type[schemas.RangeQuery], read: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Return ``read(vll=vll, ...)`` with the query of the request, which ``kind`` validates.

    ``read`` may use a replica. The line and its prefetched rows come from the primary.
    """
    query = _query(kind, request)
    return from_replica(request, lambda: read(vll=vll, **query))


class ThroughputView(APIView):
    """Throughput of a VLL in bit/s or packet/s, in and out, for each end. A value is null for a time without
    counts.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=schemas.parameters("an hour", steps=STEPS_S, unit=True),
        responses={200: schemas.THROUGHPUT},
    )
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(_of_line(request, visible_line(request, pk), schemas.ThroughputQuery, throughput))


class ThroughputCsvView(APIView):
    """Throughput of a VLL as CSV. A cell without a measured value is empty."""

    permission_classes = [IsAuthenticated]
    renderer_classes = [CsvRenderer, JSONRenderer]

    @extend_schema(
        parameters=schemas.parameters("an hour", steps=STEPS_S, unit=True),
        responses={(200, "text/csv"): {"type": "string"}},
    )
    def get(self, request: Request, pk: UUID) -> StreamingHttpResponse:
        vll = visible_line(request, pk)
        found = _of_line(request, vll, schemas.ThroughputQuery, throughput)
        return csv_response(f"throughput-{pk}.csv", _rows(vll, found))


class LatencyView(APIView):
    """Round-trip times between the two routers of a VLL (shortest, mean and longest, in µs), and lost
    packets.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=schemas.parameters("an hour", steps=LATENCY_STEPS_S), responses={200: schemas.LATENCY}
    )
    def get(self, request: Request, pk: UUID) -> Response:
        vll = visible_line(request, pk, "ends__port")
        return Response(_of_line(request, vll, schemas.LatencyQuery, latency))


class PercentilesView(APIView):
    """The final 95th percentiles of each month. A month is final when no more samples of it can arrive."""

    permission_classes = [IsAuthenticated]

    @extend_schema(responses={200: schemas.PERCENTILES})
    def get(self, request: Request, pk: UUID) -> Response:
        vll = visible_line(request, pk)
        return Response({"results": from_replica(request, lambda: frozen_percentiles(vll_id=vll.pk))})


class MonthsCsvView(APIView):
    """Availability, frame loss and 95th percentiles by month as CSV. A cell without a measured value is
    empty.
    """

    permission_classes = [IsAuthenticated]
    renderer_classes = [CsvRenderer, JSONRenderer]

    @extend_schema(responses={(200, "text/csv"): {"type": "string"}})
    def get(self, request: Request, pk: UUID) -> StreamingHttpResponse:
        vll = visible_line(request, pk)
        months = from_replica(request, lambda: months_of(vll=vll, now=clock.now()))
        rows = (month_row(vll, each) for each in months)
        return csv_response(f"months-{vll.pk}.csv", chain([HEADING], rows))


class AvailabilityView(APIView):
    """Availability of a VLL while it was in service, from its oper status, by day or month (UTC)."""

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=[*schemas.parameters("30 days"), OpenApiParameter("period", str, enum=PERIODS)],
        responses={200: schemas.AVAILABILITY},
    )
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(_of_line(request, visible_line(request, pk), schemas.AvailabilityQuery, availability))


class LossView(APIView):
    """Frame loss of a VLL in both directions, from the counters of both ends, and the frames that its routers
    dropped.

    Only times in which the frames of both ends were counted without a gap contribute to the loss.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(parameters=schemas.parameters("30 days"), responses={200: schemas.LOSS})
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(_of_line(request, visible_line(request, pk), schemas.RangeQuery, _loss))


class PolicingView(APIView):
    """The traffic that the policers at each end of a VLL forwarded and dropped."""

    permission_classes = [IsAuthenticated]

    @extend_schema(parameters=schemas.parameters("30 days"), responses={200: schemas.POLICING})
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(_of_line(request, visible_line(request, pk), schemas.RangeQuery, policed))


def _loss(**query: Any) -> dict[str, Any]:
    drops = {f"{side}_end": found.as_document() for side, found in end_drops(**query).items()}
    return frame_loss(**query) | drops


def _rows(vll: Vll, found: dict[str, Any]) -> Iterator[list[object]]:
    yield ["start", "vll", "description", "unit", "a_in", "a_out", "z_in", "z_out"]
    for a, z in zip(found["a_end"], found["z_end"], strict=True):
        start = datetime.fromtimestamp(a[0], tz=UTC).isoformat()
        yield [start, str(vll.pk), vll.description, found["unit"], *a[1:], *z[1:]]


class RouterLossesView(APIView):
    permission_classes = [NocOnly]

    @extend_schema(
        parameters=schemas.parameters("a day", steps=STEPS_S), responses={200: schemas.ROUTER_LOSSES}
    )
    def get(self, request: Request, pk: int) -> Response:
        """The losses of a router: losses of its interfaces, packets for unknown tunnels, fragments, and free
        buffers.
        """
        query = _query(schemas.LossesQuery, request)
        return Response(router_losses(router=get_object_or_404(Router, pk=pk), **query))


class LinkLossesView(APIView):
    permission_classes = [NocOnly]

    @extend_schema(
        parameters=schemas.parameters("a day", steps=STEPS_S), responses={200: schemas.LINK_LOSSES}
    )
    def get(self, request: Request, pk: int) -> Response:
        """The losses of both interfaces of a backbone link."""
        query = _query(schemas.LossesQuery, request)
        return Response(link_losses(link=get_object_or_404(BackboneLink, pk=pk), **query))


class PortThroughputView(APIView):
    """Throughput of a port, in and out: the sum over the lines that end there now."""

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=schemas.parameters("a day", unit=True), responses={200: schemas.PORT_THROUGHPUT}
    )
    def get(self, request: Request, pk: int) -> Response:
        port = get_object_or_404(Port.objects.visible_to(caller(request)), pk=pk)
        query = _query(schemas.PortThroughputQuery, request)
        return Response(from_replica(request, lambda: port_throughput(port=port, **query)))


class MonthCsvView(generics.ListAPIView[Vll]):
    """The figures of your VLLs in a month (UTC) as CSV: availability, frame loss and 95th percentiles.

    It has a row for each VLL that you may see and that was in service in the month. A cell without a measured
    value is empty.
    """

    permission_classes = [IsAuthenticated]
    renderer_classes = [CsvRenderer, JSONRenderer]
    queryset = Vll.objects.none()
    pagination_class = None
    filterset_class = MonthFilters

    def get_queryset(self) -> QuerySet[Vll]:
        return Vll.objects.visible_to(caller(self.request)).select_related("customer")

    @extend_schema(responses={(200, "text/csv"): {"type": "string"}})
    def get(self, request: Request) -> StreamingHttpResponse:  # type: ignore[override]
        lines = confirmed(request, self.filter_queryset(self.get_queryset()))
        month = MonthField(required=False).clean(request.query_params.get("month", ""))
        rows = _month_rows(request, lines, month)
        will_be_streamed(request)
        return csv_response(
            f"lines-{month:%Y-%m}.csv", chain([HEADING], rows), unbounded_for=owners_of(caller(request))
        )


def _month_rows(request: Request, lines: QuerySet[Vll], month: date) -> Iterator[list[object]]:
    now, read = clock.now(), partial(from_replica, request)
    for part in parts_of(lines, NewestVllFirst.ordering, read=read):
        for vll in part:
            yield month_row(vll, read(partial(month_of, vll=vll, month=month, now=now)))
