"""The inventory in responses, and in the NOC's requests. Rates in bit/s, sizes in bytes.

The serializers of requests are derived from ``portal.inventory.kinds``. The domain validates the numbers.
Requests and responses refer to sites, routers and customers by name. ``PATCH`` accepts any selection of
members.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from django.core.validators import RegexValidator, URLValidator
from rest_framework import serializers

from portal.accounts.models import Customer
from portal.allocation.models import ReservedVniRange
from portal.api.rest.request_bodies import (
    MAX_SAFE_INTEGER,
    StrictBooleanField,
    StrictCharField,
    StrictDegreesField,
    StrictIntegerField,
    StrictSerializer,
)
from portal.inventory import kinds
from portal.inventory.kinds import Field, InventoryKind, Type
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.queries import mtu_mismatch


class SiteSerializer(serializers.ModelSerializer[Site]):
    """A site. ``latitude`` and ``longitude`` in degrees, north and east positive; null if unknown."""

    latitude = serializers.FloatField(allow_null=True)
    longitude = serializers.FloatField(allow_null=True)

    class Meta:
        model = Site
        fields = ["id", *kinds.SITE.names]


class RouterSerializer(serializers.ModelSerializer[Router]):
    site = serializers.CharField(source="site.name")

    class Meta:
        model = Router
        fields = [
            "id",
            "name",
            "site",
            "loopback4",
            "loopback6",
            "underlay_table",
            "has_agent",
            "agent_url",
            "cpu",
            "cores",
            "line_test_pps",
            "generation",
            "maintenance_since",
            "drained_since",
            "held_since",
            "frozen_since",
            "dead_since",
        ]
        extra_kwargs = {"held_since": {"source": "locked_since"}}


FREE_BPS_HELP = "The bandwidth that can still be booked at the present speed of the link."


class PortSerializer(serializers.ModelSerializer[Port]):
    """A port. Rates in bit/s. If the port's link is slower than ``speed_bps``, the bookable bandwidth
    decreases in proportion.
    """

    router = serializers.CharField(source="router.name")
    site = serializers.CharField(source="router.site.name")
    customer = serializers.CharField(source="customer.name", default=None)
    link_bps = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="The speed of the link while it is up; null if its router reports none.",
    )
    free_bps = serializers.IntegerField(read_only=True, help_text=FREE_BPS_HELP)

    class Meta:
        model = Port
        fields = [
            "id",
            "customer",
            "router",
            "site",
            "interface",
            "description",
            "kind",
            "speed_bps",
            "link_bps",
            "bookable_bps",
            "oversubscription_percent",
            "booked_bps",
            "free_bps",
            "max_frame",
        ]


class LinkSerializer(serializers.ModelSerializer[BackboneLink]):
    """A backbone link with declared and observed MTUs; ``mtu_mismatch`` is true if these differ.

    ``a_missing``, ``z_missing``: the agent of the router on this side does not find the interface. Orders do
    not use such a link.
    """

    a_observed_ip_mtu = serializers.IntegerField(allow_null=True)
    z_observed_ip_mtu = serializers.IntegerField(allow_null=True)
    mtu_mismatch = serializers.SerializerMethodField()
    a_missing = serializers.BooleanField()
    z_missing = serializers.BooleanField()
    a_router = serializers.CharField(source="a_router.name")
    z_router = serializers.CharField(source="z_router.name")

    class Meta:
        model = BackboneLink
        fields = [
            "id",
            *kinds.LINK.names,
            "a_observed_ip_mtu",
            "z_observed_ip_mtu",
            "mtu_mismatch",
            "a_missing",
            "z_missing",
        ]

    def get_mtu_mismatch(self, link: Any) -> bool:
        return mtu_mismatch(link)


class CustomerSerializer(serializers.ModelSerializer[Customer]):
    class Meta:
        model = Customer
        fields = ["id", "name", "created_at", "approve_up_to_bps", "cooling_off_s", "retired_at"]


class VniRangeSerializer(serializers.ModelSerializer[ReservedVniRange]):
    class Meta:
        model = ReservedVniRange
        fields = ["id", "first", "last", "reason"]


_number = partial(StrictIntegerField, min_value=0, max_value=MAX_SAFE_INTEGER)


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


_MEMBERS: dict[Type, Callable[..., serializers.Field[Any, Any, Any, Any]]] = {
    Type.TEXT: StrictCharField,
    Type.HTTPS_URL: partial(StrictCharField, validators=[URLValidator(schemes=["https"])]),
    Type.ROUTER_NAME: partial(StrictCharField, validators=[RegexValidator(r"^[a-z0-9-]{1,63}\Z")]),
    Type.INTERFACE: StrictCharField,
    Type.CHOICE: serializers.ChoiceField,
    Type.BOOLEAN: StrictBooleanField,
    Type.NUMBER: _number,
    Type.SIZE: _number,
    Type.RATE: _number,
    Type.DURATION: _number,
    Type.DEGREES: StrictDegreesField,
    Type.IPV4: partial(serializers.IPAddressField, protocol="IPv4"),
    Type.IPV6: partial(serializers.IPAddressField, protocol="IPv6"),
    Type.ROW: partial(AutocompleteField, slug_field="name"),
}


def _member(of: Field) -> serializers.Field[Any, Any, Any, Any]:
    """Return the member of a request for a declared field."""
    more: dict[str, Any] = {} if of.is_required else {"required": False}
    if of.may_be_null:
        more["allow_null"] = True
    match of.type:
        case Type.TEXT | Type.HTTPS_URL | Type.INTERFACE:
            more["max_length"] = of.column.max_length
            if of.column.blank:
                more["allow_blank"] = True
        case Type.CHOICE:
            more["choices"] = [value for value, _label in of.column.choices]
        case Type.ROW:
            more["queryset"] = of.column.related_model.objects.all()
    return _MEMBERS[of.type](**more)


Serializer = TypeVar("Serializer", bound=type[StrictSerializer])


def _members_of(
    kind: InventoryKind, *, changes: bool = False, order: Sequence[str] = ()
) -> Callable[[Serializer], Serializer]:
    """Return a decorator that adds the members of a kind to a serializer.

    Members that cannot be changed come last; with ``changes``, they are left out. ``order``: the names of all
    other members in the order of the schema, if it differs from the order of the form.
    """
    places = {name: place for place, name in enumerate(order)}
    members = sorted(
        kind.written(changes=changes), key=lambda each: (each.is_fixed, places.get(each.name, 0))
    )

    def decorate(serializer: Serializer) -> Serializer:
        derived = {each.name: _member(each) for each in members}
        if kind.acceptance_of(changes=changes):
            derived["accept_affected"] = StrictBooleanField(required=False)
        serializer._declared_fields = {**derived, **serializer._declared_fields}
        return serializer

    return decorate


@_members_of(kinds.SITE)
class SiteWriteSerializer(StrictSerializer):
    """A site. ``latitude`` and ``longitude`` in degrees, north and east positive. Send both or neither."""


@_members_of(kinds.CUSTOMER)
class CustomerWriteSerializer(StrictSerializer):
    """A customer. Orders above ``approve_up_to_bps`` (bit/s) need approval; null means that no order needs
    approval. ``cooling_off_s`` null means the portal's default.
    """


@_members_of(kinds.ROUTER, changes=True)
class RouterChangeSerializer(StrictSerializer):
    """A change of a router. ``accept_affected`` allows the change even if lines have booked more cores than
    the router then has.
    """


@_members_of(kinds.ROUTER)
class RouterCreateSerializer(StrictSerializer):
    """The facts of a router.

    * ``underlay_table``: the id of VPP's FIB tables (IPv4 and IPv6) with the router's loopbacks and links. It
      is 0 unless the underlay is in a VRF.
    * ``agent_url``: "" for a router without an agent, which only carries traffic.
    * ``line_test_pps``: the maximum number of frames per second that an activation test may send from or to
      the router; null for the default of the portal.
    """


_PORT = (
    *("description", "kind", "customer", "speed_bps"),
    *("bookable_bps", "oversubscription_percent", "max_frame"),
)


@_members_of(kinds.PORT, changes=True, order=_PORT)
class PortChangeSerializer(StrictSerializer):
    """A change of a port. ``accept_affected`` allows the change even if lines in service send frames above
    the new ``max_frame``.
    """


@_members_of(kinds.PORT, order=_PORT)
class PortCreateSerializer(StrictSerializer):
    """The facts of a port. Rates in bit/s, ``max_frame`` in bytes without FCS.

    The bookable rate is ``oversubscription_percent`` of the speed, or the rate ``bookable_bps``. If both are
    null or left out, the portal's policy determines the percentage.
    """


@_members_of(kinds.LINK)
class LinkWriteSerializer(StrictSerializer):
    """A backbone link. IP MTUs in bytes, null if unknown. ``accept_affected`` allows the change even if the
    network can no longer carry some lines in service as ordered; the portal records this at each of these
    lines.
    """


class VniRangeWriteSerializer(StrictSerializer):
    """A range of VNIs, including ``first`` and ``last``."""

    first = _number()
    last = _number()
    reason = StrictCharField(max_length=100)
