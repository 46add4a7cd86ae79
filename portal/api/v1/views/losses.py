"""Losses of routers and links. For NOC staff."""

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
from portal.api.v1.views.inventory_crud import NocOnly
from portal.core import clock
from portal.inventory.models import BackboneLink, Router
from portal.telemetry.rates_and_percentiles import STEPS_S
from portal.telemetry.router_losses import link_losses, router_losses

_PARAMETERS = [
    OpenApiParameter("from", INSTANT, description="Default: a day before `to`."),
    OpenApiParameter("to", INSTANT, description="Default: now."),
    OpenApiParameter("step", int, enum=STEPS_S, description="Seconds; by default chosen by the range."),
]


class RouterLossesView(APIView):
    """The losses of a router and its interfaces."""

    permission_classes = [NocOnly]

    @extend_schema(parameters=_PARAMETERS, responses={200: ROUTER_LOSSES})
    def get(self, request: Request, pk: int) -> Response:
        """The losses of a router: losses of its interfaces, packets for unknown tunnels, fragments, and free
        buffers.
        """
        return Response(router_losses(router=get_object_or_404(Router, pk=pk), **_query(request)))


class LinkLossesView(APIView):
    """The losses of both sides of a backbone link."""

    permission_classes = [NocOnly]

    @extend_schema(parameters=_PARAMETERS, responses={200: LINK_LOSSES})
    def get(self, request: Request, pk: int) -> Response:
        """The losses of both interfaces of a backbone link."""
        return Response(link_losses(link=get_object_or_404(BackboneLink, pk=pk), **_query(request)))


def _query(request: Request) -> dict[str, Any]:
    return validated(LossesQuerySerializer, request.query_params, context={"now": clock.now()})
