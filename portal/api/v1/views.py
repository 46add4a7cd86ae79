"""The JSON door. Each view makes one domain call and declares who may use it."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import generics, status
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from portal.api.v1.pagination import KeysetPagination, NewestOrderFirst, NewestVllFirst
from portal.api.v1.permissions import IsNoc, caller
from portal.api.v1.serializers.inventory import (
    LinkSerializer,
    PortSerializer,
    RouterSerializer,
    SiteSerializer,
)
from portal.api.v1.serializers.orders import OrderAddSerializer, OrderSerializer
from portal.api.v1.serializers.throughput import ThroughputQuerySerializer
from portal.api.v1.serializers.vlls import VllSerializer
from portal.core import clock
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.telemetry.queries import throughput
from portal.vll import queries
from portal.vll.models import Order, Vll
from portal.vll.operations import order_add, order_delete


def accepted(request: Request, order: Order) -> Response:
    """202: the order is a fact, its effect comes; ``Location`` is where to watch it."""
    vll = queries.vlls(caller(request)).get(pk=order.vll_id)
    return Response(
        {"order": OrderSerializer(order).data, "vll": VllSerializer(vll).data},
        status=status.HTTP_202_ACCEPTED,
        headers={"Location": reverse("api-v1:order", args=[order.pk], request=request), "Retry-After": "1"},
    )


class VllsView(generics.ListAPIView[Vll]):
    """The caller's VLLs, and ordering a new one."""

    permission_classes = [IsAuthenticated]
    serializer_class = VllSerializer
    pagination_class = NewestVllFirst

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))

    def post(self, request: Request) -> Response:
        body = OrderAddSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        return accepted(request, order_add(user=caller(request), now=clock.now(), **body.validated_data))


class VllView(generics.RetrieveAPIView[Vll]):
    """One VLL; ``DELETE`` orders its removal, or cancels it while it is being built."""

    permission_classes = [IsAuthenticated]
    serializer_class = VllSerializer

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))

    def delete(self, request: Request, pk: UUID) -> Response:
        vll = get_object_or_404(self.get_queryset(), pk=pk)
        return accepted(request, order_delete(user=caller(request), vll=vll, now=clock.now()))


class ThroughputView(APIView):
    """``?from=&to=&step=``: bit/s in and out for each end; null where nothing was measured."""

    permission_classes = [IsAuthenticated]

    def get(self, request: Request, pk: UUID) -> Response:
        vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
        asked = ThroughputQuerySerializer(data=request.query_params, context={"now": clock.now()})
        asked.is_valid(raise_exception=True)
        return Response(throughput(vll=vll, **asked.validated_data))


class OrdersView(generics.ListAPIView[Order]):
    permission_classes = [IsAuthenticated]
    serializer_class = OrderSerializer
    pagination_class = NewestOrderFirst

    def get_queryset(self) -> QuerySet[Order]:
        return queries.orders(caller(self.request))


class OrderView(generics.RetrieveAPIView[Order]):
    permission_classes = [IsAuthenticated]
    serializer_class = OrderSerializer

    def get_queryset(self) -> QuerySet[Order]:
        return queries.orders(caller(self.request))

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        order = self.get_object()
        response = Response(self.get_serializer(order).data)
        if not order.is_terminal:
            response["Retry-After"] = "1"
        return response


class PortsView(generics.ListAPIView[Port]):
    permission_classes = [IsAuthenticated]
    serializer_class = PortSerializer
    pagination_class = KeysetPagination

    def get_queryset(self) -> QuerySet[Port]:
        return Port.objects.visible_to(caller(self.request)).select_related("router__site")


class SitesView(generics.ListAPIView[Site]):
    permission_classes = [IsAuthenticated]
    serializer_class = SiteSerializer
    pagination_class = KeysetPagination
    queryset = Site.objects.all()


class RoutersView(generics.ListAPIView[Router]):
    permission_classes = [IsNoc]
    serializer_class = RouterSerializer
    pagination_class = KeysetPagination
    queryset = Router.objects.select_related("site")


class LinksView(generics.ListAPIView[BackboneLink]):
    permission_classes = [IsNoc]
    serializer_class = LinkSerializer
    pagination_class = KeysetPagination
    queryset = BackboneLink.objects.select_related("a_router", "z_router")
