"""Found lines and their adoption, as JSON."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import Customer
from portal.api.rest.access_control import IsNoc, IsNocAdmin, caller
from portal.api.rest.idempotency import once_per_key
from portal.api.rest.lists import FoundLineFilters, KeysetPagination
from portal.api.rest.request_bodies import (
    MAX_SAFE_INTEGER,
    FactsField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    validated,
)
from portal.api.v1.lines.jobs import AcceptedSerializer, accepted
from portal.api.v1.network.inventory_serializers import AutocompleteField
from portal.core import clock
from portal.core.network.encapsulations import Transport
from portal.core.network.vlan_tags import Tagging
from portal.inventory.found_lines import FoundLine, Odd, Oddity, Standing, found_circuits, found_lines
from portal.inventory.models import ObservedCircuit
from portal.netbox_sync.l2vpn_proposals import L2vpnProposals, Proposal
from portal.vll.errors import AdoptionsRefused
from portal.vll.operations.adopt_line import (
    MOST_ADOPTIONS,
    Adoption,
    AdoptionDifference,
    AdoptionOutcome,
    Difference,
    line_adopt,
    lines_adopt,
)


class FoundEndSerializer(serializers.Serializer[Any]):
    """An attachment circuit in VPP. ``tagging`` is null if the portal has no tagging that selects the same
    frames.
    """

    router = serializers.CharField(source="router.name")
    interface = serializers.CharField(help_text="The sub-interface, or the port for a whole port.")
    port = serializers.CharField()
    tag = serializers.CharField(help_text="The tag of the interface in VPP, for example a name from vppcfg.")
    tagging = serializers.ChoiceField(choices=[each.value for each in Tagging], allow_null=True)
    outer_vlan = serializers.IntegerField(allow_null=True)
    inner_vlan = serializers.IntegerField(allow_null=True)
    exact_match = serializers.BooleanField()
    link_up = serializers.BooleanField(help_text="Whether the link of the port is up.")
    policed = serializers.BooleanField(help_text="Whether a policer limits incoming frames.")
    ip_mtu = serializers.IntegerField(
        allow_null=True, help_text="The IP MTU of the port in bytes; null if none is set."
    )


class OddSerializer(serializers.Serializer[Odd]):
    """A peculiarity of a found line that prevents or affects its adoption."""

    code = serializers.ChoiceField(choices=[each.value for each in Oddity])
    sentence = serializers.CharField(read_only=True)


class NetboxProposalSerializer(serializers.Serializer[Proposal]):
    """An L2VPN in NetBox with the VNI of the line, and its proposals for the adoption."""

    l2vpn = serializers.CharField(help_text="The name of the L2VPN, a proposal for the line's description.")
    customer = serializers.CharField(help_text="The portal's customer for its tenant; empty for none.")


class FoundLineSerializer(serializers.Serializer[Any]):
    """A line that the portal does not manage, joined from the observations of its routers."""

    id = serializers.IntegerField(
        help_text="The id of the observation of one end. It stays the same while the router reports the end"
        " unchanged."
    )
    standing = serializers.ChoiceField(choices=[each.value for each in Standing])
    transport = serializers.ChoiceField(choices=[each.value for each in Transport], allow_null=True)
    key = serializers.IntegerField(allow_null=True, help_text="The VNI or the GRE key; null for none.")
    a_end = FoundEndSerializer(source="a", allow_null=True)
    z_end = FoundEndSerializer(source="z", allow_null=True)
    odd = OddSerializer(many=True)
    netbox = serializers.SerializerMethodField()

    @extend_schema_field(NetboxProposalSerializer(allow_null=True))
    def get_netbox(self, line: FoundLine) -> dict[str, Any] | None:
        """NetBox's proposal; null without an L2VPN for this line."""
        found = self.context["netbox"].of(line)
        return None if found is None else dict(NetboxProposalSerializer(found).data)


class AdoptionSerializer(StrictSerializer):
    """The customer and the values of a found line as a line of the portal. Sizes in bytes, rates in bit/s."""

    customer = AutocompleteField(
        slug_field="name",
        queryset=Customer.objects.all(),
        required=False,
        allow_null=True,
        default=None,
        help_text="Ports that have no customer, or that are not in the portal yet, become this customer's.",
    )
    description = StrictCharField(required=False, default="", allow_blank=True, max_length=100)
    svc_mtu = StrictIntegerField(
        min_value=0, max_value=MAX_SAFE_INTEGER, help_text="The largest IP packet that the line must carry."
    )
    cir_bps = StrictIntegerField(
        min_value=0, max_value=MAX_SAFE_INTEGER, help_text="Booked immediately; enforced after the adoption."
    )


class AdoptionOfSerializer(AdoptionSerializer):
    """The adoption of one of several found lines. ``found_line``: its id in the list."""

    found_line = StrictIntegerField(min_value=0, max_value=MAX_SAFE_INTEGER)


class AdoptionsSerializer(StrictSerializer):
    """Found lines that are adopted together, or not at all."""

    dry_run = StrictBooleanField(
        required=False,
        default=False,
        help_text="True orders nothing; the response contains the results that an order would have.",
    )
    lines = serializers.ListField(child=AdoptionOfSerializer(), allow_empty=False, max_length=MOST_ADOPTIONS)


class AdoptionDifferenceSerializer(serializers.Serializer[AdoptionDifference]):
    """A change that the adoption makes."""

    code = serializers.ChoiceField(choices=[each.value for each in Difference])
    sentence = serializers.CharField(read_only=True)


class AdoptionRefusalSerializer(serializers.Serializer[Any]):
    """The reason against an adoption. ``facts``: as in a problem document."""

    code = serializers.CharField()
    detail = serializers.CharField(source="sentence")
    facts = FactsField()


class AdoptionOutcomeSerializer(serializers.Serializer[Any]):
    """The result for one line: a refusal, or the customer and the changes. ``order`` and ``vll`` are ids if
    the adoption was ordered, else null.
    """

    found_line = serializers.IntegerField()
    refusal = AdoptionRefusalSerializer(allow_null=True)
    customer = serializers.CharField(source="order.vll.customer.name", default=None, allow_null=True)
    differences = AdoptionDifferenceSerializer(many=True)
    order = serializers.SerializerMethodField()
    vll = serializers.SerializerMethodField()

    def get_order(self, outcome: AdoptionOutcome) -> UUID | None:
        return outcome.order.pk if outcome.order and not self.context["dry_run"] else None

    def get_vll(self, outcome: AdoptionOutcome) -> UUID | None:
        return outcome.order.vll_id if outcome.order and not self.context["dry_run"] else None


class AdoptionOutcomesSerializer(serializers.Serializer[Any]):
    """The results, in the order of the request."""

    lines = AdoptionOutcomeSerializer(many=True)


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
