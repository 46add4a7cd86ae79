"""What routers and links lose; for NOC staff."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.openapi.losses import LINK_LOSSES, ROUTER_LOSSES
from portal.api.openapi.throughput import INSTANT
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.serializers.throughput import LossesQuerySerializer
from portal.api.v1.views.inventory_crud import NocAlone
from portal.core import clock
from portal.inventory.models import BackboneLink, Router
from portal.telemetry.rates_and_percentiles import STEPS_S
from portal.telemetry.router_losses import link_losses, router_losses

_PARAMETERS = [
    OpenApiParameter("from", INSTANT, description="By default a day before the end."),
    OpenApiParameter("to", INSTANT, description="By default now."),
    OpenApiParameter("step", int, enum=STEPS_S, description="Seconds; by default what fits."),
]


class RouterLossesView(APIView):
    """The losses of a router: of its interfaces, and its own."""

    permission_classes = [NocAlone]

    @extend_schema(parameters=_PARAMETERS, responses={200: ROUTER_LOSSES})
    def get(self, request: Request, pk: int) -> Response:
        """What its interfaces lost, packets for tunnels that are not there, fragments, and buffers."""
        return Response(router_losses(router=get_object_or_404(Router, pk=pk), **_asked(request)))


class LinkLossesView(APIView):
    """The losses of both sides of a backbone link."""

    permission_classes = [NocAlone]

    @extend_schema(parameters=_PARAMETERS, responses={200: LINK_LOSSES})
    def get(self, request: Request, pk: int) -> Response:
        """What both interfaces of the link lost."""
        return Response(link_losses(link=get_object_or_404(BackboneLink, pk=pk), **_asked(request)))


def _asked(request: Request) -> dict[str, Any]:
    return validated(LossesQuerySerializer, request.query_params, context={"now": clock.now()})
