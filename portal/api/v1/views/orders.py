"""Orders and their states."""

from django.db.models import QuerySet
from rest_framework.permissions import IsAuthenticated

from portal.api.rest.etags import ConditionalRetrieveView
from portal.api.rest.list_filters import OrderFilters
from portal.api.rest.pagination import NewestOrderFirst
from portal.api.rest.permission_classes import caller
from portal.api.rest.replica_lists import ReplicaListView
from portal.api.v1.serializers.orders import OrderSerializer
from portal.vll import queries
from portal.vll.models import Order


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
