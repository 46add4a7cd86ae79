"""Found lines and their adoption, as JSON."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.accounts.models import Customer
from portal.api.v1.serializers.event_data import FactsField
from portal.api.v1.serializers.inventory_writes import AutocompleteField
from portal.api.v1.serializers.strict_fields import (
    MAX_SAFE_INTEGER,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from portal.core.encapsulations import Transport
from portal.core.vlan_tags import Tagging
from portal.inventory.found_lines import FoundLine, Odd, Oddity, Standing
from portal.netbox_sync.l2vpn_proposals import Proposal
from portal.vll.adoption_differences import AdoptionDifference, Difference
from portal.vll.operations.adopt_line import MOST_ADOPTIONS, AdoptionOutcome


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
