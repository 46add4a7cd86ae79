from django.db import models
from django.db.models import F, Q

from portal.inventory.models.router import Router


class BackboneLink(models.Model):
    """A link of the underlay. Each side has its own metric and IP MTU (bytes; null: unknown).

    InterfaceUse ensures that no interface is in two links.
    """

    a_router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="+")
    a_interface = models.CharField(max_length=63)
    a_metric = models.PositiveIntegerField(default=10)
    a_ip_mtu = models.PositiveIntegerField(null=True, blank=True)
    z_router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="+")
    z_interface = models.CharField(max_length=63)
    z_metric = models.PositiveIntegerField(default=10)
    z_ip_mtu = models.PositiveIntegerField(null=True, blank=True)
    ipv4 = models.BooleanField(default=True)
    ipv6 = models.BooleanField(default=True)
    in_service = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(a_router=F("z_router")), name="a_link_joins_two_routers"),
            models.CheckConstraint(
                condition=Q(a_metric__gte=1) & Q(z_metric__gte=1), name="link_metrics_are_positive"
            ),
            models.CheckConstraint(
                condition=(Q(a_ip_mtu__isnull=True) | Q(a_ip_mtu__range=(68, 65535)))
                & (Q(z_ip_mtu__isnull=True) | Q(z_ip_mtu__range=(68, 65535))),
                name="link_mtu_is_unknown_or_an_ip_mtu",
            ),
        ]

    def __str__(self) -> str:
        return link_name(str(self.a_router), self.a_interface, str(self.z_router), self.z_interface)


def link_name(a_router: str, a_interface: str, z_router: str, z_interface: str) -> str:
    """Return the name of a link on all pages: its routers' names and their interfaces."""
    return f"{a_router}:{a_interface} — {z_router}:{z_interface}"
