"""The lines and orders of the user: lists, CSV, orders of new lines, their validation, changes of a line.

Sizes are in bytes, rates in bit/s. Complete lists are streamed as CSV, row by row.
"""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.schemas import COUNT, COUNT_OR_NULL, FLAG, TEXT, Schema, about, array, or_null, record
from portal.api.problem_details import entry
from portal.api.rest.access_control import caller
from portal.api.rest.conditional_requests import etag_of, if_match
from portal.api.rest.csv_response import CsvRenderer, csv_response, owners_of
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import NewestOrderFirst, NewestVllFirst, OrderFilters, VllFilters, parts_of
from portal.api.rest.request_bodies import changed_members, check, validated
from portal.api.rest.views import ConditionalRetrieveView, ReplicaListView, confirmed
from portal.api.v1.lines.jobs import AcceptedSerializer, OrderAddedSerializer, accepted
from portal.api.v1.lines.lifecycle import CoolingOffSerializer, VllChangeSerializer
from portal.api.v1.lines.serializers import (
    OrderAddSerializer,
    OrderSerializer,
    VllSerializer,
    requested_order,
)
from portal.core import clock
from portal.core.db.replica import from_replica, will_be_streamed
from portal.diagnosis.health import Health, healths_of, with_health
from portal.vll import queries
from portal.vll.line_rules import check_may_order
from portal.vll.line_spec import END, LINE
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.add_line import order_add, similar_orders_of
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_modify, vll_describe
from portal.vll.quote import Quote, QuotedEnd, quote


class OrdersView(ReplicaListView[Order]):
    """The orders that you may see, newest first."""

    permission_classes = [IsAuthenticated]
    serializer_class = OrderSerializer
    pagination_class = NewestOrderFirst
    filterset_class = OrderFilters
    rows = queries.orders


class OrderView(ConditionalRetrieveView[Order]):
    """One order. Poll it every Retry-After seconds until it has ended. An order that has ended never
    changes.
    """

    permission_classes = [IsAuthenticated]
    serializer_class = OrderSerializer
    rows = queries.orders

    def retrieved_headers(self, found: Order) -> dict[str, str]:
        return {} if found.is_terminal else {"Retry-After": "1"}


class VllsView(ReplicaListView[Vll]):
    """The VLLs that you may see, newest first."""

    permission_classes = [IsAuthenticated]
    serializer_class = VllSerializer
    pagination_class = NewestVllFirst
    filterset_class = VllFilters
    rows = queries.vlls

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        return with_health(super().paginate_queryset(queryset) or [])

    @extend_schema(request=OrderAddSerializer, responses={202: OrderAddedSerializer})
    @once_per_key
    def post(self, request: Request) -> Response:
        """Order a new VLL. Its resources are leased immediately, and the portal then configures both routers.

        ``similar_orders`` lists the customer's orders of the last minute with the same content. If the list
        is not empty, this order may be an accidental repetition.
        """
        now = clock.now()
        order = order_add(user=caller(request), now=now, **requested_order(request.data))
        response = accepted(request, order, order.vll)
        response.data["similar_orders"] = similar_orders_of(order.vll, now=now)
        return response


class VllView(ConditionalRetrieveView[Vll]):
    """One VLL: its health, the facts behind it, the ordered and the allocated values, and both ends."""

    permission_classes = [IsAuthenticated]
    serializer_class = VllSerializer
    rows = queries.vlls

    @extend_schema(request=VllChangeSerializer, responses={200: VllSerializer, 202: AcceptedSerializer})
    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, vll: Vll) -> Response:
        """Change a VLL. If only the description changes, the change applies immediately (200). All other
        changes are ordered (202).

        You may send back the whole document that you read, with changed values. If no value differs, the
        response is 200 and nothing changes. If a value ``x`` has a member ``requested_x``, change
        ``requested_x`` in this document.
        """
        check_may_order(caller(request), vll.customer)
        document = self.get_serializer(vll).data
        changes = changed_members(request.data, document, VllChangeSerializer())
        if changes:
            body = VllChangeSerializer(data=changes)
            check(body)
            if not body.only_describes:
                changed = order_modify(
                    user=caller(request), vll=vll, changes=body.validated_data, now=clock.now()
                )
                return accepted(request, changed)
            vll_describe(user=caller(request), vll=vll, now=clock.now(), **body.validated_data)
            document = self.get_serializer(self.get_queryset().get(pk=vll.pk)).data
        return Response(document, headers={"ETag": etag_of(document)})

    @extend_schema(request=None, parameters=[CoolingOffSerializer], responses={202: AcceptedSerializer})
    @once_per_key
    @if_match(required=False)
    def delete(self, request: Request, vll: Vll) -> Response:
        """Order the removal of a VLL. If the VLL is still being built, its order is cancelled instead."""
        seconds = validated(CoolingOffSerializer, request.query_params).get("cooling_off")
        cooling_off = None if seconds is None else timedelta(seconds=seconds)
        order = order_delete(user=caller(request), vll=vll, now=clock.now(), cooling_off=cooling_off)
        return accepted(request, order)


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
        lines = confirmed(request, self.filter_queryset(self.get_queryset()))
        will_be_streamed(request)
        return csv_response("vlls.csv", _rows(request, lines), unbounded_for=owners_of(caller(request)))


def _rows(request: Request, lines: QuerySet[Vll]) -> Iterator[list[object]]:
    """Yield the heading, then one row for each VLL. The rows may come from a replica."""
    read = partial(from_replica, request)
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
        *(fact for end in vll.ends.all() for fact in _end_cells(end)),
    ]


def _end_cells(end: VllEnd) -> tuple[object, ...]:
    """Return the port and the site of an end, and its allocated values in the order of ``_OF_AN_END``."""
    return str(end.port), end.port.router.site.name, *(getattr(end, name) for name in _OF_AN_END)


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
        "path": path and {"family": path.family.value, "ip_mtu": path.path_mtu, "links": quoted.links},
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
        "a_end": _quoted_end(quoted.ends.get("a")),
        "z_end": _quoted_end(quoted.ends.get("z")),
        "routers": [asdict(router) for router in quoted.routers],
        "assumptions": [
            {"router": each.router.name, "about": each.what, "detail": each.sentence}
            for each in quoted.assumptions
        ],
        "waits": [asdict(wait) for wait in quoted.waits],
    }


def _quoted_end(end: QuotedEnd | None) -> dict[str, Any] | None:
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
