"""The use of the resources that lines lease, as JSON. Rates in bit/s."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.allocation.pool_usage import pools
from portal.api.rest.access_control import IsNoc
from portal.api.v1.network.inventory_serializers import FREE_BPS_HELP
from portal.inventory.models import Port


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
    free_bps = serializers.IntegerField(read_only=True, help_text=FREE_BPS_HELP)

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
