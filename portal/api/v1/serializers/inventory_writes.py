"""The inventory in the NOC's requests: one serializer per kind. The domain validates the numbers.

Requests and responses refer to sites, routers and customers by name. ``PATCH`` accepts any selection of
members.
"""

from typing import Any

from django.core.validators import RegexValidator, URLValidator
from rest_framework import serializers

from portal.accounts.models import Customer
from portal.api.rest.strict_fields import (
    MAX_SAFE_INTEGER,
    StrictBooleanField,
    StrictCharField,
    StrictDegreesField,
    StrictIntegerField,
    StrictSerializer,
)
from portal.inventory.models import Port, Router, Site


def _number(**more: Any) -> StrictIntegerField:
    return StrictIntegerField(min_value=0, max_value=MAX_SAFE_INTEGER, **more)


class AutocompleteField(serializers.SlugRelatedField[Any]):
    """A row that the request names by a JSON string.

    Names with NUL are not looked up: PostgreSQL cannot store NUL, so no row can have such a name.
    """

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        if "\0" in data:
            self.fail("does_not_exist", slug_name=self.slug_field, value=data.replace("\0", "\ufffd"))
        return super().to_internal_value(data)


def _named(model: Any, **more: Any) -> AutocompleteField:
    return AutocompleteField(slug_field="name", queryset=model.objects.all(), **more)


class SiteWriteSerializer(StrictSerializer):
    """A site. ``latitude`` and ``longitude`` in degrees, north and east positive. Send both or neither."""

    name = StrictCharField(max_length=100)
    latitude = StrictDegreesField(allow_null=True, required=False)
    longitude = StrictDegreesField(allow_null=True, required=False)


class CustomerWriteSerializer(StrictSerializer):
    """A customer. Orders above ``approve_up_to_bps`` (bit/s) need approval; null means that no order needs
    approval. ``cooling_off_s`` null means the portal's default.
    """

    name = StrictCharField(max_length=100)
    approve_up_to_bps = _number(allow_null=True, required=False)
    cooling_off_s = _number(allow_null=True, required=False)


class RouterFactsSerializer(StrictSerializer):
    """The facts of a router.

    * ``underlay_table``: the id of VPP's FIB tables (IPv4 and IPv6) with the router's loopbacks and links. It
      is 0 unless the underlay is in a VRF.
    * ``agent_url``: "" for a router without an agent, which only carries traffic.
    * ``line_test_pps``: the maximum number of frames per second that an activation test may send from or to
      the router; null for the default of the portal.
    """

    site = _named(Site)
    loopback4 = serializers.IPAddressField(protocol="IPv4", allow_null=True, required=False)
    loopback6 = serializers.IPAddressField(protocol="IPv6", allow_null=True, required=False)
    underlay_table = _number(required=False)
    agent_url = StrictCharField(
        max_length=200, allow_blank=True, required=False, validators=[URLValidator(schemes=["https"])]
    )
    cpu = StrictCharField(max_length=50, allow_blank=True, required=False)
    cores = _number(required=False)
    line_test_pps = _number(allow_null=True, required=False)


class RouterChangeSerializer(RouterFactsSerializer):
    """A change of a router. ``accept_affected`` allows the change even if lines have booked more cores than
    the router then has.
    """

    accept_affected = StrictBooleanField(required=False)


class RouterCreateSerializer(RouterFactsSerializer):
    name = StrictCharField(validators=[RegexValidator(r"^[a-z0-9-]{1,63}\Z")])


class PortFactsSerializer(StrictSerializer):
    """The facts of a port. Rates in bit/s, ``max_frame`` in bytes without FCS.

    The bookable rate is ``oversubscription_percent`` of the speed, or the rate ``bookable_bps``. If both are
    null or left out, the portal's policy determines the percentage.
    """

    description = StrictCharField(max_length=100, allow_blank=True, required=False)
    kind = serializers.ChoiceField(choices=Port.Kind.values, required=False)
    customer = _named(Customer, allow_null=True, required=False)
    speed_bps = _number()
    bookable_bps = _number(allow_null=True, required=False)
    oversubscription_percent = _number(allow_null=True, required=False)
    max_frame = _number(required=False)


class PortChangeSerializer(PortFactsSerializer):
    """A change of a port. ``accept_affected`` allows the change even if lines in service send frames above
    the new ``max_frame``.
    """

    accept_affected = StrictBooleanField(required=False)


class PortCreateSerializer(PortFactsSerializer):
    router = _named(Router)
    interface = StrictCharField(max_length=63)


class LinkWriteSerializer(StrictSerializer):
    """A backbone link. IP MTUs in bytes, null if unknown. ``accept_affected`` allows the change even if the
    network can no longer carry some lines in service as ordered; the portal records this at each of these
    lines.
    """

    a_router = _named(Router)
    a_interface = StrictCharField(max_length=63)
    a_metric = _number(required=False)
    a_ip_mtu = _number(allow_null=True, required=False)
    z_router = _named(Router)
    z_interface = StrictCharField(max_length=63)
    z_metric = _number(required=False)
    z_ip_mtu = _number(allow_null=True, required=False)
    ipv4 = StrictBooleanField(required=False)
    ipv6 = StrictBooleanField(required=False)
    in_service = StrictBooleanField(required=False)
    accept_affected = StrictBooleanField(required=False)


class VniRangeWriteSerializer(StrictSerializer):
    """A range of VNIs, including ``first`` and ``last``."""

    first = _number()
    last = _number()
    reason = StrictCharField(max_length=100)
