"""Found lines as they go out."""

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
from portal.inventory.found_line_sentences import odd_sentence
from portal.inventory.found_lines import FoundLine, Odd, Oddity, Standing
from portal.netbox_sync.l2vpn_proposals import Proposal
from portal.vll.adoption_differences import AdoptionDifference, Difference
from portal.vll.adoption_sentences import adoption_sentence
from portal.vll.operations.adopt_line import MOST_ADOPTIONS, AdoptionOutcome


class FoundEndSerializer(serializers.Serializer[Any]):
    """An attachment circuit as VPP has it. ``tagging`` null: it picks frames otherwise than lines here do."""

    router = serializers.CharField(source="router.name")
    interface = serializers.CharField(help_text="The sub-interface, or the port where it is whole.")
    port = serializers.CharField()
    tag = serializers.CharField(help_text="What somebody wrote on the interface, such as vppcfg's name.")
    tagging = serializers.ChoiceField(choices=[each.value for each in Tagging], allow_null=True)
    outer_vlan = serializers.IntegerField(allow_null=True)
    inner_vlan = serializers.IntegerField(allow_null=True)
    exact_match = serializers.BooleanField()
    link_up = serializers.BooleanField(help_text="Of its port.")
    policed = serializers.BooleanField(help_text="A policer works on what comes in.")
    ip_mtu = serializers.IntegerField(allow_null=True, help_text="Of its port, bytes; null: none is set.")


class OddSerializer(serializers.Serializer[Odd]):
    """Something odd about a found line."""

    code = serializers.ChoiceField(choices=[each.value for each in Oddity])
    sentence = serializers.SerializerMethodField()

    def get_sentence(self, odd: Odd) -> str:
        return odd_sentence(odd)


class NetboxProposalSerializer(serializers.Serializer[Proposal]):
    """An L2VPN of NetBox with the VNI of the line, and what it proposes."""

    l2vpn = serializers.CharField(help_text="Its name there, which the line may be called by.")
    customer = serializers.CharField(help_text="The customer that its tenant is here; empty for none.")


class FoundLineSerializer(serializers.Serializer[Any]):
    """A line that somebody else made, joined from what its routers show."""

    id = serializers.IntegerField(help_text="Of one of its ends, while its router reports it so.")
    standing = serializers.ChoiceField(choices=[each.value for each in Standing])
    transport = serializers.ChoiceField(choices=[each.value for each in Transport], allow_null=True)
    key = serializers.IntegerField(allow_null=True, help_text="The VNI or the GRE key; null without one.")
    a_end = FoundEndSerializer(source="a", allow_null=True)
    z_end = FoundEndSerializer(source="z", allow_null=True)
    odd = OddSerializer(many=True)
    netbox = serializers.SerializerMethodField()

    @extend_schema_field(NetboxProposalSerializer(allow_null=True))
    def get_netbox(self, line: FoundLine) -> dict[str, Any] | None:
        """Null where NetBox says nothing of it."""
        found = self.context["netbox"].of(line)
        return None if found is None else dict(NetboxProposalSerializer(found).data)


class AdoptionSerializer(StrictSerializer):
    """A found line as it is to be called and sold from now on. Sizes in bytes, rates in bit/s."""

    customer = AutocompleteField(
        slug_field="name",
        queryset=Customer.objects.all(),
        required=False,
        allow_null=True,
        default=None,
        help_text="Ports that belong to nobody, or are not in the portal yet, become this customer's.",
    )
    description = StrictCharField(required=False, default="", allow_blank=True, max_length=100)
    svc_mtu = StrictIntegerField(
        min_value=0, max_value=MAX_SAFE_INTEGER, help_text="The largest IP packet that it is to carry."
    )
    cir_bps = StrictIntegerField(
        min_value=0, max_value=MAX_SAFE_INTEGER, help_text="Booked at once; enforced once it is taken over."
    )


class AdoptionOfSerializer(AdoptionSerializer):
    """The same for one of several; ``found_line``: its id in the list."""

    found_line = StrictIntegerField(min_value=0, max_value=MAX_SAFE_INTEGER)


class AdoptionsSerializer(StrictSerializer):
    """Lines that are taken over together, or not at all."""

    dry_run = StrictBooleanField(
        required=False,
        default=False,
        help_text="Nothing is ordered; the answer says what would be.",
    )
    lines = serializers.ListField(child=AdoptionOfSerializer(), allow_empty=False, max_length=MOST_ADOPTIONS)


class AdoptionDifferenceSerializer(serializers.Serializer[AdoptionDifference]):
    """Something that becomes another."""

    code = serializers.ChoiceField(choices=[each.value for each in Difference])
    sentence = serializers.SerializerMethodField()

    def get_sentence(self, difference: AdoptionDifference) -> str:
        return adoption_sentence(difference)


class AdoptionRefusalSerializer(serializers.Serializer[Any]):
    """Why it cannot be; ``facts`` as in a problem document."""

    code = serializers.CharField()
    detail = serializers.CharField(source="sentence")
    facts = FactsField()


class AdoptionOutcomeSerializer(serializers.Serializer[Any]):
    """What becomes of one line: refused, or with a customer and differences. Ids only where it is ordered."""

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
    """In the order in which they were sent."""

    lines = AdoptionOutcomeSerializer(many=True)
