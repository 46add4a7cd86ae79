"""The lines and orders of the user, new lines, changes of a line, its throughput and its latency."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.etags import ConditionalRetrieveView, etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.list_filters import OrderFilters, VllFilters
from portal.api.rest.pagination import NewestOrderFirst, NewestVllFirst
from portal.api.rest.partial_update import changed_members
from portal.api.rest.permission_classes import caller
from portal.api.rest.replica_lists import ReplicaListView
from portal.api.rest.strict_fields import check, validated
from portal.api.v1.lines.lifecycle import CoolingOffSerializer, VllChangeSerializer
from portal.api.v1.lines.order_accepted import AcceptedSerializer, OrderAddedSerializer, accepted
from portal.api.v1.lines.serializers import (
    OrderAddSerializer,
    OrderSerializer,
    VllSerializer,
    requested_order,
)
from portal.api.v1.lines.throughput import (
    INSTANT,
    THROUGHPUT,
    UNITS,
    LatencyQuerySerializer,
    ThroughputQuerySerializer,
)
from portal.core import clock
from portal.core.db.replica import from_replica
from portal.diagnosis.health import with_health
from portal.telemetry.buckets import STEPS_S
from portal.telemetry.round_trips import STEPS_S as LATENCY_STEPS_S
from portal.telemetry.round_trips import latency
from portal.telemetry.throughput import throughput
from portal.vll import queries
from portal.vll.line_rules import check_may_order
from portal.vll.models import Order, Vll
from portal.vll.operations import (
    order_add,
    order_delete,
    order_modify,
    similar_orders_of,
    vll_describe,
)

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


class OrdersView(ReplicaListView[Order]):
    """The orders that you may see, newest first."""

    permission_classes = [IsAuthenticated]
    queryset = Order.objects.none()
    serializer_class = OrderSerializer
    pagination_class = NewestOrderFirst
    filterset_class = OrderFilters

    def get_queryset(self) -> QuerySet[Order]:
        return queries.orders(caller(self.request))


class OrderView(ConditionalRetrieveView[Order]):
    """One order. Poll it every Retry-After seconds until it has ended. An order that has ended never
    changes.
    """

    permission_classes = [IsAuthenticated]
    queryset = Order.objects.none()
    serializer_class = OrderSerializer

    def get_queryset(self) -> QuerySet[Order]:
        return queries.orders(caller(self.request))

    def retrieved_headers(self, found: Order) -> dict[str, str]:
        return {} if found.is_terminal else {"Retry-After": "1"}


class VllsView(ReplicaListView[Vll]):
    """The VLLs that you may see, newest first."""

    permission_classes = [IsAuthenticated]
    queryset = Vll.objects.none()
    serializer_class = VllSerializer
    pagination_class = NewestVllFirst
    filterset_class = VllFilters

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        return with_health(super().paginate_queryset(queryset) or [])

    @extend_schema(request=OrderAddSerializer, responses={202: OrderAddedSerializer})
    @once_per_key
    def post(self, request: Request) -> Response:
        """Order a new VLL. Its resources are leased immediately, and the portal then configures both routers.

        ``similar_orders`` lists your orders of the last minute with the same values. If the list is not
        empty, this order may be an accidental repetition.
        """
        now = clock.now()
        order = order_add(user=caller(request), now=now, **requested_order(request.data))
        response = accepted(request, order, order.vll)
        response.data["similar_orders"] = similar_orders_of(order.vll, now=now)
        return response


class VllView(ConditionalRetrieveView[Vll]):
    """One VLL: its health, the facts behind it, the ordered and the allocated values, and both ends."""

    permission_classes = [IsAuthenticated]
    queryset = Vll.objects.none()
    serializer_class = VllSerializer

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))

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


class ThroughputView(APIView):
    """Throughput of a VLL in bit/s or packet/s, in and out, for each end. A value is null for a time without
    counts.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=[
            OpenApiParameter("from", INSTANT, description="Default: an hour before `to`."),
            OpenApiParameter("to", INSTANT, description="Default: now."),
            OpenApiParameter(
                "step", int, enum=STEPS_S, description="Seconds; by default chosen by the range."
            ),
            OpenApiParameter("unit", str, enum=UNITS, description="The unit of the counts; default: bits."),
        ],
        responses={200: THROUGHPUT},
    )
    def get(self, request: Request, pk: UUID) -> Response:
        vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
        now = {"now": clock.now()}
        query = validated(ThroughputQuerySerializer, request.query_params, context=now)
        return Response(from_replica(request, lambda: throughput(vll=vll, **query)))


class LatencyView(APIView):
    """Round-trip times between the two routers of a VLL (shortest, mean and longest, in µs), and lost
    packets.
    """

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=[
            OpenApiParameter("from", INSTANT, description="Default: an hour before `to`."),
            OpenApiParameter("to", INSTANT, description="Default: now."),
            OpenApiParameter(
                "step", int, enum=LATENCY_STEPS_S, description="Seconds; by default chosen by the range."
            ),
        ],
        responses={200: LATENCY},
    )
    def get(self, request: Request, pk: UUID) -> Response:
        lines = Vll.objects.visible_to(caller(request)).prefetch_related("ends__port")
        vll = get_object_or_404(lines, pk=pk)
        query = validated(LatencyQuerySerializer, request.query_params, context={"now": clock.now()})
        return Response(from_replica(request, lambda: latency(vll=vll, **query)))
