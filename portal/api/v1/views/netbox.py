"""The state of the synchronization with NetBox."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.permission_classes import IsNoc
from portal.api.v1.serializers.netbox import NetboxSerializer
from portal.core import clock
from portal.netbox_sync.netbox_status import netbox_status


class NetboxView(APIView):
    """The state of the synchronization with NetBox."""

    permission_classes = [IsNoc]

    @extend_schema(responses={200: NetboxSerializer})
    def get(self, request: Request) -> Response:
        """The state of the synchronization with NetBox: the last import and export, and lines not yet
        written.

        For NOC staff.
        """
        found = netbox_status(clock.now())
        if found is None:
            nothing = dict.fromkeys(NetboxSerializer().fields)
            return Response(NetboxSerializer(nothing | {"configured": False}).data)
        state = found.state
        document = {
            "configured": True,
            "release": state.release or None,
            "stale": found.stale,
            "imported_at": state.imported_at,
            "exported_at": state.exported_at,
            "failing_since": state.failing_since,
            "retry_at": state.retry_at,
            "error": found.error or None,
            "lines_waiting": found.waiting,
            "lines_in_error": found.in_error,
        }
        return Response(NetboxSerializer(document).data)
