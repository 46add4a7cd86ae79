"""Quarantined samples, the effect of accepting them, and the NOC's decisions about them."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.rest.idempotency import once_per_key
from portal.api.rest.list_filters import QuarantineFilters
from portal.api.rest.pagination import KeysetPagination
from portal.api.rest.permission_classes import IsNoc, caller
from portal.api.rest.strict_fields import validated
from portal.api.v1.serializers.quarantine import (
    DiscardSerializer,
    QuarantinedLineSerializer,
    QuarantineSerializer,
)
from portal.core import clock
from portal.telemetry.models import Quarantine
from portal.telemetry.sample_quarantine_decisions import quarantine_accept, quarantine_discard
from portal.telemetry.sample_quarantine_preview import lines_of, month_previews, quarantines
from portal.vll.models import Vll


class NewestFirst(KeysetPagination):
    ordering = ("-id",)


class FewAtATime(KeysetPagination):
    """Pagination with small pages, because the view computes a month of data for each line."""

    default_limit = 10
    largest_limit = 20


class QuarantinesView(generics.ListAPIView[Quarantine]):
    """Quarantined samples, with an impossible time or count, newest first. For NOC staff."""

    permission_classes = [IsNoc]
    queryset = Quarantine.objects.none()
    serializer_class = QuarantineSerializer
    pagination_class = NewestFirst
    filterset_class = QuarantineFilters

    def get_queryset(self) -> QuerySet[Quarantine]:
        return quarantines()


class QuarantineView(generics.RetrieveAPIView[Quarantine]):
    """One quarantine. For NOC staff."""

    permission_classes = [IsNoc]
    queryset = Quarantine.objects.none()
    serializer_class = QuarantineSerializer

    def get_queryset(self) -> QuerySet[Quarantine]:
        return quarantines()


class LinesView(generics.ListAPIView[Vll]):
    """The lines of a quarantine, and how accepting the quarantine would change the month of each line. For
    NOC staff.
    """

    permission_classes = [IsNoc]
    queryset = Vll.objects.none()
    serializer_class = QuarantinedLineSerializer
    pagination_class = FewAtATime

    @extend_schema(responses={200: QuarantinedLineSerializer(many=True)})
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        found = get_object_or_404(quarantines(), pk=kwargs["pk"])
        lines = self.paginate_queryset(self.filter_queryset(lines_of(found))) or []
        previews = month_previews(quarantine=found, vlls=lines, now=clock.now())
        return self.get_paginated_response(QuarantinedLineSerializer(previews, many=True).data)


class AcceptView(APIView):
    """The acceptance of quarantined samples. Their times are corrected by the measured offset."""

    permission_classes = [IsNoc]

    @extend_schema(request=None, responses={200: QuarantineSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Accept quarantined samples at their corrected time. For NOC staff. Final months are corrected.

        Samples of a time for which the end already has counts are left out. 409 if the samples were
        discarded, have expired or have an unknown time.
        """
        found = get_object_or_404(quarantines(), pk=pk)
        quarantine_accept(quarantine=found, user=caller(request), now=clock.now())
        return Response(QuarantineSerializer(quarantines().get(pk=pk)).data)


class DiscardView(APIView):
    """The discarding of quarantined samples."""

    permission_classes = [IsNoc]

    @extend_schema(request=DiscardSerializer, responses={200: QuarantineSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Discard quarantined samples, with a reason. For NOC staff. 409 if they were accepted or have
        expired.
        """
        found = get_object_or_404(quarantines(), pk=pk)
        body = validated(DiscardSerializer, request.data)
        quarantine_discard(quarantine=found, user=caller(request), now=clock.now(), **body)
        return Response(QuarantineSerializer(quarantines().get(pk=pk)).data)
