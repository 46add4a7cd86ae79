"""The throughput of a port: the sum of its lines."""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.throughput import INSTANT, PORT_THROUGHPUT
from portal.api.v1.permission_classes import caller
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.serializers.throughput import UNITS, PortThroughputQuerySerializer
from portal.core import clock
from portal.core.replica import from_replica
from portal.inventory.models import Port
from portal.telemetry.port_throughput import port_throughput


class PortThroughputView(APIView):
    """Throughput of a port, in and out: the sum over the lines that end there now."""

    permission_classes = [IsAuthenticated]

    @extend_schema(
        parameters=[
            OpenApiParameter("from", INSTANT, description="Default: a day before `to`."),
            OpenApiParameter("to", INSTANT, description="Default: now."),
            OpenApiParameter("unit", str, enum=UNITS, description="The unit of the counts; default: bits."),
        ],
        responses={200: PORT_THROUGHPUT},
    )
    def get(self, request: Request, pk: int) -> Response:
        port = get_object_or_404(Port.objects.visible_to(caller(request)), pk=pk)
        context = {"now": clock.now()}
        query = validated(PortThroughputQuerySerializer, request.query_params, context=context)
        return Response(from_replica(request, lambda: port_throughput(port=port, **query)))
