"""The state of the synchronization with NetBox, as JSON."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.permission_classes import IsNoc
from portal.core import clock
from portal.netbox_sync.netbox_status import netbox_status


class NetboxSerializer(serializers.Serializer[Any]):
    """The state of the synchronization. If no NetBox is configured, ``configured`` is false and all other
    members are null.
    """

    configured = serializers.BooleanField()
    release = serializers.CharField(allow_null=True)
    stale = serializers.BooleanField(
        allow_null=True, help_text="Whether the last complete import is older than two intervals."
    )
    imported_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the last import that read all of NetBox."
    )
    exported_at = serializers.DateTimeField(
        allow_null=True, help_text="The time of the last check that found every line in NetBox up to date."
    )
    failing_since = serializers.DateTimeField(allow_null=True)
    retry_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(
        allow_null=True, help_text="The reason for the failure, and the action that it needs."
    )
    lines_waiting = serializers.IntegerField(
        allow_null=True, help_text="The number of lines that are not in NetBox yet."
    )
    lines_in_error = serializers.IntegerField(
        allow_null=True, help_text="The number of lines that NetBox refuses."
    )


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
