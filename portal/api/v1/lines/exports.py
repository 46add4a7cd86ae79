"""Complete lists as CSV, streamed row by row."""

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from itertools import chain
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from portal.api.rest.access_control import caller
from portal.api.rest.csv_response import CsvRenderer, csv_response, owners_of
from portal.api.rest.list_filters import MonthField, MonthFilters, VllFilters
from portal.api.rest.pagination import NewestVllFirst, parts_of
from portal.api.rest.views import confirmed
from portal.api.v1.lines.line_figures import HEADING, month_row
from portal.core import clock
from portal.core.db.replica import from_replica, will_be_streamed
from portal.diagnosis.health import Health, healths_of
from portal.telemetry.monthly_figures import month_of
from portal.vll import queries
from portal.vll.line_spec import END, LINE
from portal.vll.models import Vll, VllEnd

# A function that calls the given read function. It may run the function on a replica.
_Read = Callable[[Callable[[], Any]], Any]
_OF_A_LINE = tuple(each.column for each in LINE if each.exported)
_OF_AN_END = tuple(each.name for each in END if each.name != "port")


class VllsCsvView(generics.ListAPIView[Vll]):
    """All VLLs that you may see as CSV, newest first, with the filters of their list."""

    permission_classes = [IsAuthenticated]
    renderer_classes = [CsvRenderer, JSONRenderer]
    queryset = Vll.objects.none()
    pagination_class = None
    filterset_class = VllFilters

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.with_shared_ports(queries.vlls(caller(self.request)))

    @extend_schema(responses={(200, "text/csv"): {"type": "string"}})
    def get(self, request: Request) -> StreamingHttpResponse:  # type: ignore[override]
        rows = confirmed(request, self.filter_queryset(self.get_queryset()))
        will_be_streamed(request)
        return csv_response(
            "vlls.csv", _rows(rows, partial(from_replica, request)), unbounded_for=owners_of(caller(request))
        )


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
        rows = _month_rows(lines, month, partial(from_replica, request))
        will_be_streamed(request)
        return csv_response(
            f"lines-{month:%Y-%m}.csv", chain([HEADING], rows), unbounded_for=owners_of(caller(request))
        )


def _month_rows(lines: QuerySet[Vll], month: date, read: _Read) -> Iterator[list[object]]:
    now = clock.now()
    for part in parts_of(lines, NewestVllFirst.ordering, read=read):
        for vll in part:
            yield month_row(vll, read(partial(month_of, vll=vll, month=month, now=now)))


def _rows(lines: QuerySet[Vll], read: _Read) -> Iterator[list[object]]:
    """Yield the heading, then one row for each VLL. Rates are in bit/s, ``svc_mtu`` in bytes."""
    yield [
        *("id", "customer", "description", "created_at", "lifecycle", "decommission_at"),
        *("health", "health_cause", "admin_status", "oper_status", "in_sync", "transport", "vni", "gre_key"),
        *_OF_A_LINE,
        *(f"{side}_{fact}" for side in "az" for fact in ("port", "site", *_OF_AN_END)),
    ]
    for part in parts_of(lines, NewestVllFirst.ordering, read=read):
        healths = read(partial(healths_of, part))
        yield from (_row(vll, healths[vll.pk]) for vll in part)


def _row(vll: Vll, health: Health | None) -> list[object]:
    return [
        str(vll.pk),
        vll.customer.name,
        vll.description,
        vll.created_at.isoformat(),
        vll.lifecycle,
        vll.decommission_at and vll.decommission_at.isoformat(),
        health and health.state.value,
        health and health.cause,
        vll.admin_status,
        vll.oper_status,
        vll.in_sync,
        vll.transport,
        vll.vni,
        vll.gre_key,
        *(getattr(vll, name) for name in _OF_A_LINE),
        *(fact for end in vll.ends.all() for fact in _end(end)),
    ]


def _end(end: VllEnd) -> tuple[object, ...]:
    """Return the values of an end: its port, its site, and its allocated values in the order of
    ``_OF_AN_END``.
    """
    return str(end.port), end.port.router.site.name, *(getattr(end, name) for name in _OF_AN_END)
