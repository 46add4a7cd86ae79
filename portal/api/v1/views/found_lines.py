"""Found lines: lines on the routers that the portal does not manage."""

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
    """The lines on the routers that the portal does not manage, with their peculiarities. For NOC staff."""

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
    """Adopt a found line, unchanged, for the customer of its ports. For NOC admins."""

    permission_classes = [IsNocAdmin]

    @extend_schema(request=AdoptionSerializer, responses={202: AcceptedSerializer})
    @once_per_key
    def post(self, request: Request, pk: int) -> Response:
        """Adopt a found line for the customer of its ports. For NOC admins.

        Only its tags change on the routers. The portal leases its VLANs, key and bandwidth as for any other
        line. The adoption is refused if one of these resources is not available, or if a peculiarity of the
        line prevents the adoption.
        """
        adoption = Adoption(found_line=pk, **validated(AdoptionSerializer, request.data))
        return accepted(request, line_adopt(user=caller(request), adoption=adoption, now=clock.now()))


class AdoptSeveralView(APIView):
    """Adopt several found lines together, or check the result for each. For NOC admins."""

    permission_classes = [IsNocAdmin]

    @extend_schema(
        operation_id="found_lines_adopt_several",
        request=AdoptionsSerializer,
        responses={202: AdoptionOutcomesSerializer, 200: AdoptionOutcomesSerializer},
    )
    @once_per_key
    def post(self, request: Request) -> Response:
        """Adopt several found lines together, or check the result for each. For NOC admins.

        If one adoption is refused, none is ordered; otherwise the response is 202. Each line is checked as if
        the preceding lines of the request had been adopted. With `dry_run`, nothing is ordered, and the
        response (200) contains the refusals.
        """
        body = validated(AdoptionsSerializer, request.data)
        wanted, dry_run = [Adoption(**each) for each in body["lines"]], body["dry_run"]
        outcomes = lines_adopt(user=caller(request), wanted=wanted, now=clock.now(), dry_run=dry_run)
        if not dry_run:
            _require_all(outcomes)
        document = AdoptionOutcomesSerializer({"lines": outcomes}, context={"dry_run": dry_run})
        return Response(document.data, status=status.HTTP_200_OK if dry_run else status.HTTP_202_ACCEPTED)


def _require_all(outcomes: Sequence[AdoptionOutcome]) -> None:
    """Raise AdoptionsRefused if a line was refused. Each refusal names its line."""
    refusals = []
    for at, outcome in enumerate(outcomes):
        if outcome.refusal:
            outcome.refusal.field = f"lines.{at}"
            refusals.append(outcome.refusal)
    if refusals:
        raise AdoptionsRefused(count=len(refusals), refusals=tuple(refusals))
