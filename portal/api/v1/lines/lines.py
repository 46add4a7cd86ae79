"""The lines and orders of the user, new lines, and changes of a line."""

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.rest.access_control import caller
from portal.api.rest.conditional_requests import changed_members, etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.list_filters import OrderFilters, VllFilters
from portal.api.rest.pagination import NewestOrderFirst, NewestVllFirst
from portal.api.rest.request_bodies import check, validated
from portal.api.rest.views import ConditionalRetrieveView, ReplicaListView
from portal.api.v1.lines.jobs import AcceptedSerializer, OrderAddedSerializer, accepted
from portal.api.v1.lines.lifecycle import CoolingOffSerializer, VllChangeSerializer
from portal.api.v1.lines.serializers import (
    OrderAddSerializer,
    OrderSerializer,
    VllSerializer,
    requested_order,
)
from portal.core import clock
from portal.diagnosis.health import with_health
from portal.vll import queries
from portal.vll.line_rules import check_may_order
from portal.vll.models import Order, Vll
from portal.vll.operations.add_line import order_add, similar_orders_of
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_modify, vll_describe


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
