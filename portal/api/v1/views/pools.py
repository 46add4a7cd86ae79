"""The use of the resources that lines lease."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.allocation.pool_usage import pools
from portal.api.v1.permission_classes import IsNoc
from portal.api.v1.serializers.pools import PoolsSerializer


class PoolsView(APIView):
    """The use of VNIs, GRE keys and address pairs, bandwidth, VLANs and cores."""

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
