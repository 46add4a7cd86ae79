"""Ports, sites, routers and links."""

from django.db.models import QuerySet
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated

from portal.api.v1.conditional import ConditionalRetrieveView
from portal.api.v1.filters import PortFilters
from portal.api.v1.pagination import KeysetPagination
from portal.api.v1.permissions import IsNoc, caller
from portal.api.v1.serializers.inventory import (
    LinkSerializer,
    PortSerializer,
    RouterSerializer,
    SiteSerializer,
)
from portal.inventory.models import BackboneLink, Port, Router, Site


class PortsView(generics.ListAPIView[Port]):
    """The ports that you may order on, with what is booked and free."""

    permission_classes = [IsAuthenticated]
    queryset = Port.objects.none()
    serializer_class = PortSerializer
    pagination_class = KeysetPagination
    filterset_class = PortFilters

    def get_queryset(self) -> QuerySet[Port]:
        return Port.objects.visible_to(caller(self.request)).select_related("router__site")


class PortView(ConditionalRetrieveView[Port]):
    """One port, with what is booked and free."""

    permission_classes = [IsAuthenticated]
    queryset = Port.objects.none()
    serializer_class = PortSerializer

    def get_queryset(self) -> QuerySet[Port]:
        return Port.objects.visible_to(caller(self.request)).select_related("router__site")


class SitesView(generics.ListAPIView[Site]):
    """The sites where ports are."""

    permission_classes = [IsAuthenticated]
    serializer_class = SiteSerializer
    pagination_class = KeysetPagination
    queryset = Site.objects.all()


class RoutersView(generics.ListAPIView[Router]):
    """The routers; for NOC staff."""

    permission_classes = [IsNoc]
    serializer_class = RouterSerializer
    pagination_class = KeysetPagination
    queryset = Router.objects.select_related("site")


class LinksView(generics.ListAPIView[BackboneLink]):
    """The backbone links with metric and IP MTU of each side; for NOC staff."""

    permission_classes = [IsNoc]
    serializer_class = LinkSerializer
    pagination_class = KeysetPagination
    queryset = BackboneLink.objects.select_related("a_router", "z_router")
