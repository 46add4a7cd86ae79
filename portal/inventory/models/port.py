from django.db import models
from django.db.models import F, Q

from portal.accounts.models import Customer
from portal.core.tenant_scope import TenantQuerySet
from portal.inventory.models.router import Router

# 50 times the speed: beyond what anybody sells.
MAX_OVERSUBSCRIPTION = 5000


class Port(models.Model):
    """A UNI (or ENNI): an interface of a router that a customer is connected to.

    That no interface is two ports, or a port and a link's side, is InterfaceUse's.
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
    # Bandwidth that may be booked (bit/s): so many per cent of the speed, or any number where that is null.
    bookable_bps = models.BigIntegerField()
    oversubscription_percent = models.PositiveSmallIntegerField(null=True, blank=True)
    booked_bps = models.BigIntegerField(default=0)
    # Largest frame that the port takes, in bytes without FCS.
    max_frame = models.PositiveIntegerField(default=9022)
    # Since when it is kept for the record only.
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

    @property
    def free_bps(self) -> int:
        return self.bookable_bps - self.booked_bps
