"""The bodies of requests that change or remove a VLL, or decide about an order."""

from typing import Any

from rest_framework import serializers

from portal.api.v1.partial_update import REQUESTED
from portal.api.v1.serializers.bandwidth_profile import EIR_HELP, burst_field
from portal.api.v1.serializers.orders import AUTO, LINK_LOSS_HELP, OuterVlanField
from portal.api.v1.serializers.strict_fields import (
    MAX_SAFE_INTEGER,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from portal.core.encapsulations import Transport
from portal.core.vlan_tags import Tagging
from portal.vll.operations import Changes


class EndChangeSerializer(StrictSerializer):
    """The changes of an end. Members that are left out stay as they are (RFC 7396).

    ``requested_outer_vlan`` is another name for ``outer_vlan``: in the document of a line, it is the ordered
    value.
    """

    port = StrictIntegerField(required=False, min_value=1, max_value=MAX_SAFE_INTEGER)
    tagging = serializers.ChoiceField(required=False, choices=[t.value for t in Tagging])
    outer_vlan = OuterVlanField(required=False, allow_null=True)
    requested_outer_vlan = OuterVlanField(required=False, allow_null=True)
    inner_vlan = StrictIntegerField(required=False, allow_null=True)
    exact_match = StrictBooleanField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = _as_ordered(attrs)
        return attrs | ({"tagging": Tagging(attrs["tagging"])} if "tagging" in attrs else {})


class VllChangeSerializer(StrictSerializer):
    """The changes of a VLL. Sizes in bytes, rates in bit/s. Members that are left out stay as they are.

    ``requested_transport``, ``requested_cbs_bytes`` and ``requested_ebs_bytes`` are other names for
    ``transport``, ``cbs_bytes`` and ``ebs_bytes``: in the document of a line, they are the ordered values.
    """

    description = StrictCharField(required=False, allow_blank=True, max_length=100)
    a_end = EndChangeSerializer(required=False)
    z_end = EndChangeSerializer(required=False)
    svc_mtu = StrictIntegerField(required=False, min_value=0, max_value=MAX_SAFE_INTEGER)
    cir_bps = StrictIntegerField(required=False, min_value=0, max_value=MAX_SAFE_INTEGER)
    cbs_bytes = burst_field("CBS", required=False)
    eir_bps = StrictIntegerField(required=False, min_value=0, max_value=MAX_SAFE_INTEGER, help_text=EIR_HELP)
    ebs_bytes = burst_field("EBS", required=False)
    transport = serializers.ChoiceField(choices=[AUTO, *[t.value for t in Transport]], required=False)
    requested_transport = serializers.ChoiceField(
        choices=[AUTO, *[t.value for t in Transport]], required=False
    )
    requested_cbs_bytes = burst_field("CBS", required=False)
    requested_ebs_bytes = burst_field("EBS", required=False)
    link_loss_forwarding = StrictBooleanField(required=False, help_text=LINK_LOSS_HELP)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return _as_ordered(attrs)

    @property
    def only_describes(self) -> bool:
        """Whether the request changes only the description. Routers do not need to know the description."""
        return set(self.validated_data) == {"description"}

    @property
    def changes(self) -> Changes:
        """The changes, for the operation."""
        members = dict(self.validated_data)
        bursts = {name: members.pop(name) for name in ("cbs_bytes", "ebs_bytes") if name in members}
        return Changes(**members, bursts=bursts)


def _as_ordered(attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the members with the names that an order uses, without ``requested_``."""
    plain = {name: value for name, value in attrs.items() if not name.startswith(REQUESTED)}
    return plain | {name.removeprefix(REQUESTED): attrs[name] for name in attrs if name.startswith(REQUESTED)}


class CoolingOffSerializer(serializers.Serializer[Any]):
    """The query of DELETE. If ``cooling_off`` is left out, the default for the customer applies."""

    cooling_off = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=10**9,
        help_text="Seconds during which the removal can be undone.",
    )


class RejectionSerializer(StrictSerializer):
    """The reason for a rejection; the customer can read it."""

    reason = StrictCharField(max_length=500, several_lines=True)


class ForceEndSerializer(StrictSerializer):
    """The reason to end an order without the routers. It is stored with the order; the customer can
    read it.
    """

    reason = StrictCharField(max_length=500, several_lines=True)
