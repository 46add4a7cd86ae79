"""The bodies of requests that change or remove a VLL, or decide about an order."""

from typing import Any

from rest_framework import serializers

from portal.api.rest.partial_update import REQUESTED
from portal.api.rest.strict_fields import StrictCharField, StrictSerializer
from portal.api.v1.serializers.orders import property_fields
from portal.core.network.vlan_tags import Tagging
from portal.vll.line_spec import END, LINE

# The schema has the ordered values of a line in this order.
_ORDERED = ("requested_transport", "requested_cbs_bytes", "requested_ebs_bytes")


class EndChangeSerializer(StrictSerializer):
    """The changes of an end. Members that are left out stay as they are (RFC 7396).

    ``requested_outer_vlan`` is another name for ``outer_vlan``: in the document of a line, it is the ordered
    value.
    """

    def get_fields(self) -> dict[str, Any]:
        return property_fields(END, changes=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = _as_ordered(attrs)
        return attrs | ({"tagging": Tagging(attrs["tagging"])} if "tagging" in attrs else {})


class VllChangeSerializer(StrictSerializer):
    """The changes of a VLL. Sizes in bytes, rates in bit/s. Members that are left out stay as they are.

    ``requested_transport``, ``requested_cbs_bytes`` and ``requested_ebs_bytes`` are other names for
    ``transport``, ``cbs_bytes`` and ``ebs_bytes``: in the document of a line, they are the ordered values.
    """

    def get_fields(self) -> dict[str, Any]:
        fields = property_fields(LINE, changes=True)
        ends = {"a_end": EndChangeSerializer(required=False), "z_end": EndChangeSerializer(required=False)}
        ordered = {name: fields.pop(name) for name in _ORDERED}
        flags = {each.name: fields.pop(each.name) for each in LINE if each.is_flag}
        return {"description": fields.pop("description"), **ends, **fields, **ordered, **flags}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return _as_ordered(attrs)

    @property
    def only_describes(self) -> bool:
        """Whether the request changes only the description. Routers do not need to know the description."""
        return set(self.validated_data) == {"description"}


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
