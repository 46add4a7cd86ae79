"""Sites, routers, ports, links, customers and reserved VNIs. The NOC manages them. Customers can read the
objects in their tenant scope.
"""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from portal.accounts.models import Customer
from portal.accounts.people import memberships_lock
from portal.allocation.models import ReservedVniRange
from portal.allocation.tunnel_leases import vni_range_change, vni_range_create, vni_range_remove
from portal.api.rest.access_control import IsNocAdmin, NocOnly, NocWrites, ProvesIdentity, caller
from portal.api.rest.conditional_requests import changed_members, etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.list_filters import filters_of_kind
from portal.api.rest.pagination import KeysetPagination
from portal.api.rest.request_bodies import validated
from portal.api.rest.views import ConditionalRetrieveView
from portal.api.v1.network.inventory_serializers import (
    CustomerSerializer,
    CustomerWriteSerializer,
    LinkSerializer,
    LinkWriteSerializer,
    PortChangeSerializer,
    PortCreateSerializer,
    PortSerializer,
    RouterChangeSerializer,
    RouterCreateSerializer,
    RouterSerializer,
    SiteSerializer,
    SiteWriteSerializer,
    VniRangeSerializer,
    VniRangeWriteSerializer,
)
from portal.core import clock
from portal.inventory import kinds
from portal.inventory.interfaces import with_link_speed
from portal.inventory.models import Port, Router, Site
from portal.inventory.operations import WRITES, Writes, customer_return
from portal.inventory.queries import links_with_observed_mtu
from portal.inventory.rules import rules_of


class InventoryView(generics.GenericAPIView[Any]):
    """The common part of the views of a kind of row.

    ``writes``: the operations of the kind. ``keyword``: the name of the argument by which ``writes.change``
    and ``writes.remove`` get the row.
    """

    write_serializer: ClassVar[type[Serializer[Any]]]
    writes: ClassVar[Writes]
    keyword: ClassVar[str]


class InventoryListView(InventoryView, generics.ListAPIView[Any]):
    """A list."""

    pagination_class = KeysetPagination

    @once_per_key
    def post(self, request: Request) -> Response:
        """Add an object. For NOC staff."""
        body = validated(self.write_serializer, request.data)
        made = self.writes.create(user=caller(request), now=clock.now(), **body)
        document = self.get_serializer(self.get_queryset().get(pk=made.pk)).data
        item = self.keyword.replace("_", "-")
        location = reverse(f"api-v1:{item}", args=[made.pk], request=request)
        headers = {"Location": location, "ETag": etag_of(document)}
        return Response(document, status=status.HTTP_201_CREATED, headers=headers)


class InventoryItemView(InventoryView, ConditionalRetrieveView[Any]):
    """An item."""

    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, found: Any) -> Response:
        """Change the object. For NOC staff. Members that are equal to the current values change nothing."""
        document = self.get_serializer(found).data
        body = changed_members(request.data, document, self.write_serializer())
        if body:
            changes = validated(self.write_serializer, body, partial=True)
            self.writes.change(**{self.keyword: found}, user=caller(request), now=clock.now(), **changes)
            rows: QuerySet[Any] = self.get_queryset()
            document = self.get_serializer(rows.get(pk=found.pk)).data
        return Response(document, headers={"ETag": etag_of(document)})

    @once_per_key
    @if_match(required=False)
    def delete(self, request: Request, found: Any) -> Response:
        """Remove the object. For NOC admins. An object that is in use cannot be removed."""
        self.writes.remove(**{self.keyword: found}, user=caller(request), now=clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class _Ports(InventoryView):
    queryset = Port.objects.none()
    serializer_class = PortSerializer
    keyword, writes = "port", WRITES["port"]

    def get_queryset(self) -> QuerySet[Port]:
        ports = Port.objects.visible_to(caller(self.request)).filter(retired_at__isnull=True)
        return with_link_speed(ports.select_related("router__site", "customer"))


class PortsView(_Ports, InventoryListView):
    """The ports on which you may order lines, with their booked and free bandwidth."""

    permission_classes = [NocWrites]
    filterset_class = filters_of_kind(kinds.PORT)
    write_serializer = PortCreateSerializer


class PortView(_Ports, InventoryItemView):
    """One port, with its booked and free bandwidth."""

    permission_classes = [NocWrites]
    write_serializer = PortChangeSerializer

    def lock_before(self, pk: int) -> None:
        """Lock the lines that a change can affect. ``port_change`` locks the same rows."""
        if self.request.method == "PATCH":
            rules_of(Port).lock(pk)


class _Sites(InventoryView):
    serializer_class = SiteSerializer
    queryset = Site.objects.all()
    write_serializer = SiteWriteSerializer
    keyword, writes = "site", WRITES["site"]


class SitesView(_Sites, InventoryListView):
    """The sites of ports."""

    permission_classes = [NocWrites]
    filterset_class = filters_of_kind(kinds.SITE)


class SiteView(_Sites, InventoryItemView):
    """One site."""

    permission_classes = [NocWrites]


class _Routers(InventoryView):
    serializer_class = RouterSerializer
    queryset = Router.objects.filter(retired_at__isnull=True).select_related("site")
    keyword, writes = "router", WRITES["router"]


class RoutersView(_Routers, InventoryListView):
    """The routers. For NOC staff."""

    permission_classes = [NocOnly]
    filterset_class = filters_of_kind(kinds.ROUTER)
    write_serializer = RouterCreateSerializer


class RouterView(_Routers, InventoryItemView):
    """One router. For NOC staff."""

    permission_classes = [NocOnly]
    write_serializer = RouterChangeSerializer


class _Links(InventoryView):
    queryset = links_with_observed_mtu()
    serializer_class = LinkSerializer
    write_serializer = LinkWriteSerializer
    keyword, writes = "link", WRITES["link"]


class LinksView(_Links, InventoryListView):
    """The backbone links with metric and IP MTU of each side. For NOC staff."""

    permission_classes = [NocOnly]
    filterset_class = filters_of_kind(kinds.LINK)


class LinkView(_Links, InventoryItemView):
    """One backbone link. For NOC staff."""

    permission_classes = [NocOnly]


class _Customers(InventoryView):
    serializer_class = CustomerSerializer
    queryset = Customer.objects.all()
    write_serializer = CustomerWriteSerializer
    keyword, writes = "customer", WRITES["customer"]


class CustomersView(_Customers, InventoryListView):
    """The customers. For NOC staff."""

    permission_classes = [NocOnly]
    filterset_class = filters_of_kind(kinds.CUSTOMER)


class CustomerView(_Customers, InventoryItemView):
    """One customer. For NOC staff. The removal of a customer that has a history only retires the customer:
    its members can no longer sign in.
    """

    permission_classes = [NocOnly, ProvesIdentity]
    proves_identity_for = frozenset({"DELETE"})

    def lock_before(self, pk: int) -> None:
        """Lock the memberships that ``customer_remove`` deletes. ``customer_remove`` locks the same rows."""
        if self.request.method == "DELETE":
            memberships_lock(customer_id=pk)


class CustomerReopenView(APIView):
    permission_classes = [IsNocAdmin, ProvesIdentity]

    @extend_schema(request=None, responses={200: CustomerSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Reopen a retired customer. For NOC admins. The customer's accounts open again, and their API tokens
        stay revoked.
        """
        customer = get_object_or_404(Customer, pk=pk)
        customer_return(customer=customer, user=caller(request), now=clock.now())
        return Response(CustomerSerializer(Customer.objects.get(pk=pk)).data)


class _VniRanges(InventoryView):
    serializer_class = VniRangeSerializer
    queryset = ReservedVniRange.objects.all()
    write_serializer = VniRangeWriteSerializer
    keyword, writes = "vni_range", Writes(vni_range_create, vni_range_change, vni_range_remove)


class VniRangesView(_VniRanges, InventoryListView):
    """The reserved ranges of VNIs, which the portal never leases. For NOC staff."""

    permission_classes = [NocOnly]


class VniRangeView(_VniRanges, InventoryItemView):
    """One reserved range of VNIs. For NOC staff."""

    permission_classes = [NocOnly]
