"""The inventory in responses. Rates in bit/s, sizes in bytes."""

from typing import Any

from rest_framework import serializers

from portal.accounts.models import Customer
from portal.allocation.models import ReservedVniRange
from portal.inventory.models import BackboneLink, Port, Router, Site
from portal.inventory.queries import mtu_mismatch


class SiteSerializer(serializers.ModelSerializer[Site]):
    """A site. ``latitude`` and ``longitude`` in degrees, north and east positive; null if unknown."""

    latitude = serializers.FloatField(allow_null=True)
    longitude = serializers.FloatField(allow_null=True)

    class Meta:
        model = Site
        fields = ["id", "name", "latitude", "longitude"]


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
            "a_router",
            "a_interface",
            "a_metric",
            "a_ip_mtu",
            "z_router",
            "z_interface",
            "z_metric",
            "z_ip_mtu",
            "ipv4",
            "ipv6",
            "in_service",
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
