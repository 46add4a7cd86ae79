"""Reports about a VLL: percentiles, availability, frame loss, policing, and throughput as CSV."""

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

from portal.api.openapi.line_figures import AVAILABILITY, LOSS, PERCENTILES, POLICING
from portal.api.openapi.throughput import INSTANT
from portal.api.v1.csv_response import CsvRenderer, csv_response
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.serializers.throughput import (
    UNITS,
    AvailabilityQuerySerializer,
    RangeQuerySerializer,
    ThroughputQuerySerializer,
)
from portal.api.v1.views.months import HEADING, month_row
from portal.core import clock
from portal.core.replica import from_replica
from portal.telemetry.availability import PERIODS, availability
from portal.telemetry.line_end_drops import end_drops
from portal.telemetry.line_frame_loss import frame_loss
from portal.telemetry.month_close import frozen_percentiles
from portal.telemetry.monthly_figures import months_of
from portal.telemetry.policer_counts import policed
from portal.telemetry.rates_and_percentiles import STEPS_S
from portal.telemetry.throughput import throughput
from portal.vll.models import Vll

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
