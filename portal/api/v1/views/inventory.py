"""Sites, routers, ports, links, customers and reserved VNIs. The NOC manages them. Customers can read the
objects in their tenant scope.
"""

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import Customer
from portal.accounts.team import memberships_lock
from portal.allocation.models import ReservedVniRange
from portal.allocation.vni_leases import vni_range_change, vni_range_create, vni_range_remove
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.list_filters import CustomerFilters, LinkFilters, PortFilters, RouterFilters, SiteFilters
from portal.api.rest.permission_classes import IsNocAdmin, ProvesIdentity, caller
from portal.api.v1.serializers.inventory import (
    CustomerSerializer,
    LinkSerializer,
    PortSerializer,
    RouterSerializer,
    SiteSerializer,
    VniRangeSerializer,
)
from portal.api.v1.serializers.inventory_writes import (
    CustomerWriteSerializer,
    LinkWriteSerializer,
    PortChangeSerializer,
    PortCreateSerializer,
    RouterChangeSerializer,
    RouterCreateSerializer,
    SiteWriteSerializer,
    VniRangeWriteSerializer,
)
from portal.api.v1.views.inventory_crud import InventoryItemView, InventoryListView, NocOnly, NocWrites
from portal.core import clock
from portal.inventory import operations
from portal.inventory.models import Port, Router, Site
from portal.inventory.port_link_state import with_link_speed
from portal.inventory.queries import links_with_observed_mtu
from portal.inventory.rules import rules_of


class _Ports(GenericAPIView[Port]):
    def get_queryset(self) -> QuerySet[Port]:
        ports = Port.objects.visible_to(caller(self.request)).filter(retired_at__isnull=True)
        return with_link_speed(ports.select_related("router__site", "customer"))


class PortsView(_Ports, InventoryListView):
    """The ports on which you may order lines, with their booked and free bandwidth."""

    permission_classes = [NocWrites]
    queryset = Port.objects.none()
    serializer_class = PortSerializer
    filterset_class = PortFilters
    write_serializer = PortCreateSerializer
    create = operations.port_create
    item = "port"


class PortView(_Ports, InventoryItemView):
    """One port, with its booked and free bandwidth."""

    permission_classes = [NocWrites]
    queryset = Port.objects.none()
    serializer_class = PortSerializer
    write_serializer = PortChangeSerializer
    change, remove, keyword = operations.port_change, operations.port_remove, "port"

    def lock_before(self, pk: int) -> None:
        """Lock the lines that a change can affect. ``port_change`` locks the same rows."""
        if self.request.method == "PATCH":
            rules_of(Port).lock(pk)


class SitesView(InventoryListView):
    """The sites of ports."""

    permission_classes = [NocWrites]
    serializer_class = SiteSerializer
    queryset = Site.objects.all()
    filterset_class = SiteFilters
    write_serializer = SiteWriteSerializer
    create = operations.site_create
    item = "site"


class SiteView(InventoryItemView):
    """One site."""

    permission_classes = [NocWrites]
    serializer_class = SiteSerializer
    queryset = Site.objects.all()
    write_serializer = SiteWriteSerializer
    change, remove, keyword = operations.site_change, operations.site_remove, "site"


class RoutersView(InventoryListView):
    """The routers. For NOC staff."""

    permission_classes = [NocOnly]
    serializer_class = RouterSerializer
    queryset = Router.objects.filter(retired_at__isnull=True).select_related("site")
    filterset_class = RouterFilters
    write_serializer = RouterCreateSerializer
    create = operations.router_create
    item = "router"


class RouterView(InventoryItemView):
    """One router. For NOC staff."""

    permission_classes = [NocOnly]
    serializer_class = RouterSerializer
    queryset = Router.objects.filter(retired_at__isnull=True).select_related("site")
    write_serializer = RouterChangeSerializer
    change, remove, keyword = operations.router_change, operations.router_remove, "router"


class LinksView(InventoryListView):
    """The backbone links with metric and IP MTU of each side. For NOC staff."""

    permission_classes = [NocOnly]
    queryset = links_with_observed_mtu()
    serializer_class = LinkSerializer
    filterset_class = LinkFilters
    write_serializer = LinkWriteSerializer
    create = operations.link_create
    item = "link"


class LinkView(InventoryItemView):
    """One backbone link. For NOC staff."""

    permission_classes = [NocOnly]
    queryset = links_with_observed_mtu()
    serializer_class = LinkSerializer
    write_serializer = LinkWriteSerializer
    change, remove, keyword = operations.link_change, operations.link_remove, "link"


class CustomersView(InventoryListView):
    """The customers. For NOC staff."""

    permission_classes = [NocOnly]
    serializer_class = CustomerSerializer
    queryset = Customer.objects.all()
    filterset_class = CustomerFilters
    write_serializer = CustomerWriteSerializer
    create = operations.customer_create
    item = "customer"


class CustomerView(InventoryItemView):
    """One customer. For NOC staff. The removal of a customer that has a history only retires the customer:
    its members can no longer sign in.
    """

    permission_classes = [NocOnly, ProvesIdentity]
    proves_identity_for = frozenset({"DELETE"})
    serializer_class = CustomerSerializer
    queryset = Customer.objects.all()
    write_serializer = CustomerWriteSerializer
    change, remove, keyword = operations.customer_change, operations.customer_remove, "customer"

    def lock_before(self, pk: int) -> None:
        """Lock the memberships that ``customer_remove`` deletes. ``customer_remove`` locks the same rows."""
        if self.request.method == "DELETE":
            memberships_lock(customer_id=pk)


class CustomerReopenView(APIView):
    """The reopening of a retired customer."""

    permission_classes = [IsNocAdmin, ProvesIdentity]

    @extend_schema(request=None, responses={200: CustomerSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Reopen a retired customer. For NOC admins. The customer's accounts open again, and their API tokens
        stay revoked.
        """
        customer = get_object_or_404(Customer, pk=pk)
        operations.customer_return(customer=customer, user=caller(request), now=clock.now())
        return Response(CustomerSerializer(Customer.objects.get(pk=pk)).data)


class VniRangesView(InventoryListView):
    """The reserved ranges of VNIs, which the portal never leases. For NOC staff."""

    permission_classes = [NocOnly]
    serializer_class = VniRangeSerializer
    queryset = ReservedVniRange.objects.all()
    write_serializer = VniRangeWriteSerializer
    create = vni_range_create
    item = "vni-range"


class VniRangeView(InventoryItemView):
    """One reserved range of VNIs. For NOC staff."""

    permission_classes = [NocOnly]
    serializer_class = VniRangeSerializer
    queryset = ReservedVniRange.objects.all()
    write_serializer = VniRangeWriteSerializer
    change, remove, keyword = vni_range_change, vni_range_remove, "vni_range"
