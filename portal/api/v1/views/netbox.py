"""The state of NetBox."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.permission_classes import IsNoc
from portal.api.v1.serializers.netbox import NetboxSerializer
from portal.core import clock
from portal.netbox_sync.netbox_status import standing


class NetboxView(APIView):
    """The portal's knowledge of NetBox, and its age."""

    permission_classes = [IsNoc]

    @extend_schema(responses={200: NetboxSerializer})
    def get(self, request: Request) -> Response:
        """The age of what is known of NetBox, and what waits to be written there; for NOC staff."""
        stands = standing(clock.now())
        if stands is None:
            nothing = dict.fromkeys(NetboxSerializer().fields)
            return Response(NetboxSerializer(nothing | {"configured": False}).data)
        state = stands.state
        told = {
            "configured": True,
            "release": state.release or None,
            "stale": stands.stale,
            "imported_at": state.imported_at,
            "exported_at": state.exported_at,
            "failing_since": state.failing_since,
            "retry_at": state.retry_at,
            "error": stands.error or None,
            "lines_waiting": stands.waiting,
            "lines_in_error": stands.in_error,
        }
        return Response(NetboxSerializer(told).data)
