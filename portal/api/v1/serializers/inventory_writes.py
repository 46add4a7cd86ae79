"""The JSON that the NOC writes: one serializer per kind. What the numbers can be is the domain's question.

Sites, routers and customers are named by name, as they go out. ``PATCH`` takes any part.
"""

from typing import Any

from django.core.validators import RegexValidator, URLValidator
from rest_framework import serializers

from portal.accounts.models import Customer
from portal.api.v1.serializers.strict_fields import (
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
    """A row by its name, a JSON string. PostgreSQL has no NUL in a text, and so no row of such a name."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid")
        if "\0" in data:
            self.fail("does_not_exist", slug_name=self.slug_field, value=data.replace("\0", "\ufffd"))
        return super().to_internal_value(data)


def _named(model: Any, **more: Any) -> AutocompleteField:
    return AutocompleteField(slug_field="name", queryset=model.objects.all(), **more)


class SiteWriteSerializer(StrictSerializer):
    """``latitude`` and ``longitude`` in degrees, north and east positive: both, or neither."""

    name = StrictCharField(max_length=100)
    latitude = StrictDegreesField(allow_null=True, required=False)
    longitude = StrictDegreesField(allow_null=True, required=False)


class CustomerWriteSerializer(StrictSerializer):
    """``approve_up_to_bps`` in bit/s, null: no order waits. ``cooling_off_s`` null: the default."""

    name = StrictCharField(max_length=100)
    approve_up_to_bps = _number(allow_null=True, required=False)
    cooling_off_s = _number(allow_null=True, required=False)


class RouterFactsSerializer(StrictSerializer):
    """``underlay_table``: VPP's FIB table, of either family, with its loopbacks and links; 0 unless they are
    in a VRF. ``agent_url`` "" for a router that only carries traffic. ``line_test_pps``: frames in a second
    that a line's test may send to it or from it; null: as the deployment says."""

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
    """``accept_affected``: even if fewer cores stay than the lines have booked."""

    accept_affected = StrictBooleanField(required=False)


class RouterCreateSerializer(RouterFactsSerializer):
    name = StrictCharField(validators=[RegexValidator(r"^[a-z0-9-]{1,63}\Z")])


class PortFactsSerializer(StrictSerializer):
    """The bookable rate is ``oversubscription_percent`` of the speed, or the rate ``bookable_bps``; with
    neither, or null, the policy's part of the speed. Rates in bit/s, ``max_frame`` in bytes without FCS."""

    description = StrictCharField(max_length=100, allow_blank=True, required=False)
    kind = serializers.ChoiceField(choices=Port.Kind.values, required=False)
    customer = _named(Customer, allow_null=True, required=False)
    speed_bps = _number()
    bookable_bps = _number(allow_null=True, required=False)
    oversubscription_percent = _number(allow_null=True, required=False)
    max_frame = _number(required=False)


class PortChangeSerializer(PortFactsSerializer):
    """``accept_affected``: even if lines in service send larger frames than the port then takes."""

    accept_affected = StrictBooleanField(required=False)


class PortCreateSerializer(PortFactsSerializer):
    router = _named(Router)
    interface = StrictCharField(max_length=63)


class LinkWriteSerializer(StrictSerializer):
    """IP MTUs in bytes, null where unknown. ``accept_affected``: even if lines in service are no longer
    carried as they were sold; each of them is told."""

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
    """Both ends are included."""

    first = _number()
    last = _number()
    reason = StrictCharField(max_length=100)
