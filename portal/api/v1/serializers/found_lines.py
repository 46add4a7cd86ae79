"""Found lines as they go out."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.serializers.strict_fields import (
    MAX_SAFE_INTEGER,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from portal.core.encapsulations import Transport
from portal.core.vlan_tags import Tagging
from portal.inventory.found_line_sentences import odd_sentence
from portal.inventory.found_lines import Odd, Oddity, Standing


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


class FoundLineSerializer(serializers.Serializer[Any]):
    """A line that somebody else made, joined from what its routers show."""

    id = serializers.IntegerField(help_text="Of one of its ends, while its router reports it so.")
    standing = serializers.ChoiceField(choices=[each.value for each in Standing])
    transport = serializers.ChoiceField(choices=[each.value for each in Transport], allow_null=True)
    key = serializers.IntegerField(allow_null=True, help_text="The VNI or the GRE key; null without one.")
    a_end = FoundEndSerializer(source="a", allow_null=True)
    z_end = FoundEndSerializer(source="z", allow_null=True)
    odd = OddSerializer(many=True)


class AdoptionSerializer(StrictSerializer):
    """A found line as it is to be called and sold from now on. Sizes in bytes, rates in bit/s."""

    description = StrictCharField(required=False, default="", allow_blank=True, max_length=100)
    svc_mtu = StrictIntegerField(
        min_value=0, max_value=MAX_SAFE_INTEGER, help_text="The largest IP packet that it is to carry."
    )
    cir_bps = StrictIntegerField(
        min_value=0, max_value=MAX_SAFE_INTEGER, help_text="Booked at once; enforced once it is taken over."
    )
