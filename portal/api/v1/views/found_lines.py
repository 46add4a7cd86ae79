"""Lines that others made on the routers."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.v1.list_filters import FoundLineFilters
from portal.api.v1.pagination import KeysetPagination
from portal.api.v1.permissions import IsNoc
from portal.api.v1.serializers.found_lines import FoundLineSerializer
from portal.inventory.found_lines import found_circuits, found_lines
from portal.inventory.models import ObservedCircuit


class FoundLinesView(generics.ListAPIView[ObservedCircuit]):
    """Lines that somebody else made, joined across routers, and what is odd about them; for NOC staff."""

    permission_classes = [IsNoc]
    queryset = ObservedCircuit.objects.none()
    serializer_class = FoundLineSerializer
    pagination_class = KeysetPagination
    filterset_class = FoundLineFilters

    def get_queryset(self) -> QuerySet[ObservedCircuit]:
        return found_circuits()

    @extend_schema(responses={200: FoundLineSerializer(many=True)})
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        circuits = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        lines = FoundLineSerializer(list(found_lines(circuits or [])), many=True)
        return self.get_paginated_response(lines.data)
