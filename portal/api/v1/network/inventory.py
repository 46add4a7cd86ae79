"""Sites, routers, ports, links, customers and reserved VNIs, and the use of pools. Rates in bit/s.

The NOC manages these objects. Customers can read the objects in their tenant scope.
"""

from dataclasses import asdict
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from portal.accounts.models import Customer
from portal.accounts.people import memberships_lock
from portal.allocation.models import ReservedVniRange
from portal.allocation.pool_usage import pools
from portal.allocation.tunnel_leases import vni_range_change, vni_range_create, vni_range_remove
from portal.api.rest.access_control import IsNoc, IsNocAdmin, NocOnly, NocWrites, ProvesIdentity, caller
from portal.api.rest.conditional_requests import etag_of, if_match
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import KeysetPagination, filters_of_kind
from portal.api.rest.request_bodies import changed_members, validated
from portal.api.rest.views import ConditionalRetrieveView
from portal.api.v1.network import inventory_serializers
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
    serializer_class = inventory_serializers.PortSerializer
    keyword, writes = "port", WRITES["port"]

    def get_queryset(self) -> QuerySet[Port]:
        ports = Port.objects.visible_to(caller(self.request)).filter(retired_at__isnull=True)
        return with_link_speed(ports.select_related("router__site", "customer"))


class PortsView(_Ports, InventoryListView):
    """The ports on which you may order lines, with their booked and free bandwidth."""

    permission_classes = [NocWrites]
    filterset_class = filters_of_kind(kinds.PORT)
    write_serializer = inventory_serializers.PortCreateSerializer


class PortView(_Ports, InventoryItemView):
    """One port, with its booked and free bandwidth."""

    permission_classes = [NocWrites]
    write_serializer = inventory_serializers.PortChangeSerializer

    def lock_before(self, pk: int) -> None:
        """Lock the lines that a change can affect. ``port_change`` locks the same rows."""
        if self.request.method == "PATCH":
            rules_of(Port).lock(pk)


class _Sites(InventoryView):
    serializer_class = inventory_serializers.SiteSerializer
    queryset = Site.objects.all()
    write_serializer = inventory_serializers.SiteWriteSerializer
    keyword, writes = "site", WRITES["site"]


class SitesView(_Sites, InventoryListView):
    """The sites of ports."""

    permission_classes = [NocWrites]
    filterset_class = filters_of_kind(kinds.SITE)


class SiteView(_Sites, InventoryItemView):
    """One site."""

    permission_classes = [NocWrites]


class _Routers(InventoryView):
    serializer_class = inventory_serializers.RouterSerializer
    queryset = Router.objects.filter(retired_at__isnull=True).select_related("site")
    keyword, writes = "router", WRITES["router"]


class RoutersView(_Routers, InventoryListView):
    """The routers. For NOC staff."""

    permission_classes = [NocOnly]
    filterset_class = filters_of_kind(kinds.ROUTER)
    write_serializer = inventory_serializers.RouterCreateSerializer


class RouterView(_Routers, InventoryItemView):
    """One router. For NOC staff."""

    permission_classes = [NocOnly]
    write_serializer = inventory_serializers.RouterChangeSerializer


class _Links(InventoryView):
    queryset = links_with_observed_mtu()
    serializer_class = inventory_serializers.LinkSerializer
    write_serializer = inventory_serializers.LinkWriteSerializer
    keyword, writes = "link", WRITES["link"]


class LinksView(_Links, InventoryListView):
    """The backbone links with metric and IP MTU of each side. For NOC staff."""

    permission_classes = [NocOnly]
    filterset_class = filters_of_kind(kinds.LINK)


class LinkView(_Links, InventoryItemView):
    """One backbone link. For NOC staff."""

    permission_classes = [NocOnly]


class _Customers(InventoryView):
    serializer_class = inventory_serializers.CustomerSerializer
    queryset = Customer.objects.all()
    write_serializer = inventory_serializers.CustomerWriteSerializer
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

    @extend_schema(request=None, responses={200: inventory_serializers.CustomerSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Reopen a retired customer. For NOC admins. The customer's accounts open again, and their API tokens
        stay revoked.
        """
        customer = get_object_or_404(Customer, pk=pk)
        customer_return(customer=customer, user=caller(request), now=clock.now())
        return Response(inventory_serializers.CustomerSerializer(Customer.objects.get(pk=pk)).data)


class _VniRanges(InventoryView):
    serializer_class = inventory_serializers.VniRangeSerializer
    queryset = ReservedVniRange.objects.all()
    write_serializer = inventory_serializers.VniRangeWriteSerializer
    keyword, writes = "vni_range", Writes(vni_range_create, vni_range_change, vni_range_remove)


class VniRangesView(_VniRanges, InventoryListView):
    """The reserved ranges of VNIs, which the portal never leases. For NOC staff."""

    permission_classes = [NocOnly]


class VniRangeView(_VniRanges, InventoryItemView):
    """One reserved range of VNIs. For NOC staff."""

    permission_classes = [NocOnly]


class LeasesSerializer(serializers.Serializer[Any]):
    """The numbers of leases. ``resting`` leases are cooling down and become free automatically.
    ``quarantined`` leases wait for the confirmation of a router.
    """

    leased = serializers.IntegerField()
    resting = serializers.IntegerField()
    quarantined = serializers.IntegerField()


class VnisSerializer(LeasesSerializer):
    """The numbers of VNIs. ``total`` counts all 24-bit values except 0; ``reserved`` counts the VNIs in
    ``/vni-ranges``.
    """

    total = serializers.IntegerField()
    reserved = serializers.IntegerField()
    free = serializers.IntegerField()


class FullPortSerializer(serializers.ModelSerializer[Port]):
    port_name = serializers.CharField(source="__str__")
    customer = serializers.CharField(source="customer.name", default=None, allow_null=True)
    free_bps = serializers.IntegerField(read_only=True, help_text=inventory_serializers.FREE_BPS_HELP)

    class Meta:
        model = Port
        fields = ["id", "port_name", "customer", "bookable_bps", "booked_bps", "free_bps"]


class BusyPortSerializer(serializers.Serializer[Any]):
    """A port. ``leases``: the number of its leases. A lease is for a VLAN or for the whole port."""

    id = serializers.IntegerField(source="port.pk")
    port_name = serializers.CharField(source="port.__str__")
    customer = serializers.CharField(source="port.customer.name", default=None, allow_null=True)
    leases = serializers.IntegerField()


class FullRouterSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    booked_cores = serializers.FloatField()
    bookable_cores = serializers.FloatField()


class PoolsSerializer(serializers.Serializer[Any]):
    """The use of VNIs, GRE keys and address pairs, and the ten fullest ports and routers.

    ``fullest_ports``: by booked bandwidth. ``busiest_ports``: by leased VLANs. ``fullest_routers``: by booked
    cores. The fullest object is first.
    """

    vnis = VnisSerializer()
    gre_keys = LeasesSerializer()
    gre_pairs = LeasesSerializer()
    fullest_ports = FullPortSerializer(many=True)
    busiest_ports = BusyPortSerializer(many=True)
    fullest_routers = FullRouterSerializer(many=True)


class PoolsView(APIView):
    permission_classes = [IsNoc]

    @extend_schema(responses={200: PoolsSerializer})
    def get(self, request: Request) -> Response:
        """The use of VNIs, GRE keys and address pairs, and the fullest ports and routers. For NOC staff."""
        found = pools()
        counts = found.counts
        document = {
            "vnis": {
                "total": counts.vni_total,
                "reserved": counts.vni_reserved,
                "free": counts.vni_free,
                **asdict(counts.vnis),
            },
            "gre_keys": asdict(counts.gre_keys),
            "gre_pairs": asdict(counts.gre_pairs),
            "fullest_ports": found.fullest_ports,
            "busiest_ports": found.busiest_ports,
            "fullest_routers": [
                {"id": router.pk, "name": router.name, **asdict(use)} for router, use in found.fullest_routers
            ],
        }
        return Response(PoolsSerializer(document).data)
