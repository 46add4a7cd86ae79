"""Lines that others made on the routers."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.idempotency import once_per_key
from portal.api.v1.list_filters import FoundLineFilters
from portal.api.v1.pagination import KeysetPagination
from portal.api.v1.permission_classes import IsNoc, IsNocAdmin, caller
from portal.api.v1.serializers.found_lines import (
    AdoptionOutcomesSerializer,
    AdoptionSerializer,
    AdoptionsSerializer,
    FoundLineSerializer,
)
from portal.api.v1.serializers.order_accepted import AcceptedSerializer
from portal.api.v1.serializers.strict_fields import validated
from portal.api.v1.views.order_accepted import accepted
from portal.core import clock
from portal.inventory.found_lines import found_circuits, found_lines
from portal.inventory.models import ObservedCircuit
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals
from portal.vll.errors import AdoptionsRefused
from portal.vll.operations import Adoption, line_adopt, lines_adopt
from portal.vll.operations.adopt_line import AdoptionOutcome


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
        lines = list(found_lines(circuits or []))
        context = {"netbox": L2vpnProposals(lines)}
        return self.get_paginated_response(FoundLineSerializer(lines, many=True, context=context).data)


class AdoptView(APIView):
    """Take a found line over, as it is, for the customer of its ports; for NOC admins."""

    permission_classes = [IsNocAdmin]

    @extend_schema(request=AdoptionSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Only its tags change on the routers; its VLANs, its key and its bandwidth are booked as
        those of any line. Where that cannot be, or something about the line is odd, it is refused."""
        asked = validated(AdoptionSerializer, request.data)
        adoption = Adoption(found_line=pk, **asked)
        return accepted(request, line_adopt(user=caller(request), adoption=adoption, now=clock.now()))


class AdoptSeveralView(APIView):
    """Take over several found lines together, or see what would become of each; for NOC admins."""

    permission_classes = [IsNocAdmin]

    @extend_schema(
        operation_id="found_lines_adopt_several",
        request=AdoptionsSerializer,
        responses={202: AdoptionOutcomesSerializer, 200: AdoptionOutcomesSerializer},
    )
    @once_per_key
    def post(self, request: Request) -> Response:
        """All of them are ordered (202), or none where one is refused; each is checked as if it came alone
        after those before it. With `dry_run` nothing is ordered (200), and refusals are in the answer."""
        asked = validated(AdoptionsSerializer, request.data)
        wanted, dry_run = [Adoption(**each) for each in asked["lines"]], asked["dry_run"]
        outcomes = lines_adopt(user=caller(request), wanted=wanted, now=clock.now(), dry_run=dry_run)
        if not dry_run:
            _require_all(outcomes)
        answer = AdoptionOutcomesSerializer({"lines": outcomes}, context={"dry_run": dry_run})
        return Response(answer.data, status=status.HTTP_200_OK if dry_run else status.HTTP_202_ACCEPTED)


def _require_all(outcomes: Sequence[AdoptionOutcome]) -> None:
    """Raises AdoptionsRefused, with each refusal at its line."""
    refusals = []
    for at, outcome in enumerate(outcomes):
        if outcome.refusal:
            outcome.refusal.field = f"lines.{at}"
            refusals.append(outcome.refusal)
    if refusals:
        raise AdoptionsRefused(count=len(refusals), refusals=tuple(refusals))
