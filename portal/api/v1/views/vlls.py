"""VLLs: listing, ordering, removing, and their graphs. Each view makes one domain call."""

from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import generics
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.conditional import ConditionalRetrieveView, etag_of, if_match
from portal.api.v1.filters import VllFilters
from portal.api.v1.idempotency import once_per_key
from portal.api.v1.pagination import NewestVllFirst
from portal.api.v1.permissions import caller
from portal.api.v1.serializers.orders import OrderAddSerializer
from portal.api.v1.serializers.throughput import ThroughputQuerySerializer
from portal.api.v1.serializers.vlls import VllChangeSerializer, VllSerializer
from portal.api.v1.views.accepted import accepted
from portal.core import clock
from portal.telemetry.queries import throughput
from portal.vll import queries
from portal.vll.models import Vll
from portal.vll.operations import order_add, order_delete, vll_describe


class VllsView(generics.ListAPIView[Vll]):
    """The caller's VLLs, and ordering a new one."""

    permission_classes = [IsAuthenticated]
    serializer_class = VllSerializer
    pagination_class = NewestVllFirst
    filterset_class = VllFilters

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))

    @once_per_key
    def post(self, request: Request) -> Response:
        body = OrderAddSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        return accepted(request, order_add(user=caller(request), now=clock.now(), **body.validated_data))


class VllView(ConditionalRetrieveView[Vll]):
    """One VLL; ``DELETE`` orders its removal, or cancels it while it is being built."""

    permission_classes = [IsAuthenticated]
    serializer_class = VllSerializer

    def get_queryset(self) -> QuerySet[Vll]:
        return queries.vlls(caller(self.request))

    @once_per_key
    @if_match(required=True)
    def patch(self, request: Request, vll: Vll) -> Response:
        body = VllChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        vll_describe(user=caller(request), vll=vll, now=clock.now(), **body.validated_data)
        document = self.get_serializer(self.get_queryset().get(pk=vll.pk)).data
        return Response(document, headers={"ETag": etag_of(document)})

    @once_per_key
    @if_match(required=False)
    def delete(self, request: Request, vll: Vll) -> Response:
        return accepted(request, order_delete(user=caller(request), vll=vll, now=clock.now()))


class ThroughputView(APIView):
    """``?from=&to=&step=``: bit/s in and out for each end; null where nothing was measured."""

    permission_classes = [IsAuthenticated]

    def get(self, request: Request, pk: UUID) -> Response:
        vll = get_object_or_404(Vll.objects.visible_to(caller(request)), pk=pk)
        asked = ThroughputQuerySerializer(data=request.query_params, context={"now": clock.now()})
        asked.is_valid(raise_exception=True)
        return Response(throughput(vll=vll, **asked.validated_data))
