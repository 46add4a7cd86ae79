from django.db import models
from django.db.models import F, Q
from django.utils.functional import cached_property

from portal.accounts.models import Customer
from portal.core.db.row_conditions import TenantQuerySet
from portal.inventory.models.router import Router

# 50 times the speed: more than any ISP sells.
MAX_OVERSUBSCRIPTION = 5000


class LinkSpeedNotRead(RuntimeError):
    """The port was read without ``with_link_speed``. A property must not run a statement for each port."""


class Port(models.Model):
    """A UNI or an ENNI: a router's interface towards a customer or another operator.

    InterfaceUse ensures that no interface is two ports, or a port and a side of a link.
    """

    class Kind(models.TextChoices):
        UNI = "uni"
        ENNI = "enni"

    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="ports")
    interface = models.CharField(max_length=63)
    description = models.CharField(max_length=100, blank=True)
    kind = models.CharField(max_length=4, choices=Kind, default=Kind.UNI)
    customer = models.ForeignKey(
        Customer, on_delete=models.PROTECT, related_name="ports", null=True, blank=True
    )
    speed_bps = models.BigIntegerField()
    # bookable_bps: the bandwidth that can be booked (bit/s). It is oversubscription_percent of the speed, or
    # any rate if the percentage is null.
    bookable_bps = models.BigIntegerField()
    oversubscription_percent = models.PositiveSmallIntegerField(null=True, blank=True)
    booked_bps = models.BigIntegerField(default=0)
    # The largest frame that the port accepts, in bytes without FCS.
    max_frame = models.PositiveIntegerField(default=9022)
    # Since when the port is kept for the record only.
    retired_at = models.DateTimeField(null=True, blank=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=["uni", "enni"]), name="port_kind_is_uni_or_enni"),
            models.CheckConstraint(condition=Q(speed_bps__gt=0), name="a_port_has_a_speed"),
            models.CheckConstraint(
                condition=Q(booked_bps__gte=0) & Q(booked_bps__lte=F("bookable_bps")),
                name="port_bandwidth_is_never_overbooked",
            ),
            models.CheckConstraint(
                condition=Q(oversubscription_percent__isnull=True)
                | Q(
                    oversubscription_percent__range=(1, MAX_OVERSUBSCRIPTION),
                    bookable_bps=F("speed_bps") * F("oversubscription_percent") / 100,
                ),
                name="oversubscription_says_what_is_bookable",
            ),
            models.CheckConstraint(condition=Q(max_frame__gte=64), name="port_takes_the_smallest_frame"),
            models.CheckConstraint(
                condition=Q(retired_at__isnull=True) | (Q(customer__isnull=True) & Q(booked_bps=0)),
                name="a_retired_port_is_nobodys",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router}:{self.interface}"

    # portal.inventory.interfaces.with_link_speed reads these two properties together with the port.
    @cached_property
    def link_bps(self) -> int | None:
        """Return the speed (bit/s) of the port's link while it is up; None if its router reports none."""
        raise LinkSpeedNotRead

    @cached_property
    def bookable_now_bps(self) -> int:
        """Return the bandwidth (bit/s) that can be booked at the speed of the link."""
        raise LinkSpeedNotRead

    @property
    def is_slow(self) -> bool:
        """Return whether the link is slower than the port's agreed speed."""
        return self.link_bps is not None and self.link_bps < self.speed_bps

    @property
    def free_bps(self) -> int:
        """Return the bandwidth (bit/s) that can still be booked at the speed of the link."""
        return self.free_after_bps(0)

    def free_after_bps(self, more_bps: int) -> int:
        """Return the bandwidth (bit/s) that can still be booked after lines have booked ``more_bps`` more."""
        return max(self.bookable_now_bps - self.booked_bps - more_bps, 0)

    @property
    def is_overbooked(self) -> bool:
        """Return whether lines have booked more than the link carries at its present speed."""
        return self.booked_bps > self.bookable_now_bps


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


class InterfaceUse(models.Model):
    """The use of one interface, as a side of a link or as a port. An interface has at most one use.

    Only triggers on the tables of links and ports write this table (sql/interface_uses.sql). The table
    contains ids instead of relations, because its rows are created and deleted with the links and ports.
    """

    router_id = models.BigIntegerField()
    interface = models.CharField(max_length=63)
    link_id = models.BigIntegerField(null=True, db_index=True)
    port_id = models.BigIntegerField(null=True, db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["router_id", "interface"], name="an_interface_has_one_use"),
        ]

    def __str__(self) -> str:
        return f"{self.router_id}:{self.interface}"


class TopologyVersion(models.Model):
    """The version of the underlay. Results can be cached by this version.

    The table has one row, which triggers update when the underlay changes.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    version = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="there_is_one_topology")]

    def __str__(self) -> str:
        return str(self.version)
