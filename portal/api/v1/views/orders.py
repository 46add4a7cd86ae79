"""Orders: what became of what was asked for."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.v1.pagination import NewestOrderFirst
from portal.api.v1.permissions import caller
from portal.api.v1.serializers.orders import OrderSerializer
from portal.vll import queries
from portal.vll.models import Order


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
