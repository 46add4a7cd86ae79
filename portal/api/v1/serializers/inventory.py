"""Sites, routers, ports and links as they go out. Rates in bit/s, sizes in bytes."""

from rest_framework import serializers

from portal.inventory.models import BackboneLink, Port, Router, Site


class SiteSerializer(serializers.ModelSerializer[Site]):
    class Meta:
        model = Site
        fields = ["id", "name"]


class RouterSerializer(serializers.ModelSerializer[Router]):
    site = serializers.CharField(source="site.name")

    class Meta:
        model = Router
        fields = ["id", "name", "site", "loopback4", "loopback6", "has_agent", "cpu", "cores", "generation"]


class PortSerializer(serializers.ModelSerializer[Port]):
    router = serializers.CharField(source="router.name")
    site = serializers.CharField(source="router.site.name")

    class Meta:
        model = Port
        fields = [
            "id",
            "router",
            "site",
            "interface",
            "description",
            "kind",
            "speed_bps",
            "bookable_bps",
            "booked_bps",
            "free_bps",
            "max_frame",
        ]


class LinkSerializer(serializers.ModelSerializer[BackboneLink]):
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
        ]
