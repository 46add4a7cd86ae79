"""Leases. The database ensures that nothing is leased twice.

A lease refers to its owner (a VLL, an order, a reservation or a tombstone) only by UUID.
"""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import BigIntegerRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q

from portal.inventory.models import Port, Router


class Lease(models.Model):
    """A lease. It is active while ``released_at`` is null.

    After its release it cools down until ``free_at``, and then it is deleted. A released lease without
    ``free_at`` is quarantined.
    """

    owner = models.UUIDField(db_column="holder", db_index=True)
    leased_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True)
    free_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class VniLease(Lease):
    """A 24-bit VXLAN or GENEVE network identifier (RFC 7348, RFC 8926); 0 is not used."""

    vni = models.IntegerField(unique=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(vni__range=(1, 2**24 - 1)), name="vni_fits_24_bits"),
            models.UniqueConstraint(
                fields=["owner"], condition=Q(released_at__isnull=True), name="a_vll_holds_one_vni"
            ),
        ]

    def __str__(self) -> str:
        return f"VNI {self.vni}"


class ReservedVniRange(models.Model):
    """VNIs that the operator reserves for other uses, from ``first`` to ``last``, both included."""

    first = models.IntegerField()
    last = models.IntegerField()
    reason = models.CharField(max_length=100)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(first__gte=1) & Q(last__lte=2**24 - 1) & Q(first__lte=F("last")),
                name="reserved_vni_range_is_a_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.first}-{self.last}: {self.reason}"


# A 32-bit number (RFC 2890); VPP writes 0 for a tunnel without a key.
LAST_GRE_KEY = 2**32 - 1


class GreKeyLease(Lease):
    """The key of a GRE tunnel. Since 25.10, VPP distinguishes tunnels between the same addresses by key."""

    gre_key = models.BigIntegerField(unique=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(gre_key__range=(1, LAST_GRE_KEY)), name="gre_key_fits_32_bits"
            ),
            models.UniqueConstraint(
                fields=["owner"], condition=Q(released_at__isnull=True), name="a_vll_holds_one_gre_key"
            ),
        ]

    def __str__(self) -> str:
        return f"GRE key {self.gre_key}"


class GrePairLease(Lease):
    """An unordered pair of tunnel addresses. Without keys, VPP allows one Ethernet GRE tunnel per pair."""

    low = models.GenericIPAddressField()
    high = models.GenericIPAddressField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["low", "high"], name="gre_pair_is_leased_once"),
            models.CheckConstraint(condition=Q(low__lt=F("high")), name="gre_pair_is_stored_in_order"),
            models.UniqueConstraint(
                fields=["owner"], condition=Q(released_at__isnull=True), name="a_vll_holds_one_gre_pair"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.low} – {self.high}"


class PortVlanLease(models.Model):
    """The frames that one VLL end takes from its port, as a range of tag keys.

    A key is ``tpid_bit << 24 | outer << 12 | inner`` (see ``portal.allocation.vlan_leases``). A whole port is
    the range of all keys. A sub-interface that is not exact-match takes every inner tag under its outer tag.
    Rows are deleted on release: a customer's VLAN needs no cool-down.
    """

    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="vlan_leases")
    owner = models.UUIDField(db_column="holder")
    side = models.CharField(max_length=1)
    keys = BigIntegerRangeField()
    leased_at = models.DateTimeField()

    class Meta:
        constraints = [
            ExclusionConstraint(
                name="vlan_leased_once_per_port",
                expressions=[("port", RangeOperators.EQUAL), ("keys", RangeOperators.OVERLAPS)],
            ),
            models.CheckConstraint(
                condition=Q(
                    keys__contained_by=Func(
                        0, 2**25, function="int8range", output_field=BigIntegerRangeField()
                    )
                ),
                name="tag_keys_are_tags",
            ),
            models.CheckConstraint(condition=Q(keys__isempty=False), name="tag_keys_are_not_empty"),
            models.UniqueConstraint(fields=["owner", "side"], name="a_vll_end_holds_one_vlan"),
        ]

    def __str__(self) -> str:
        return f"{self.port_id} {self.keys}"


class BandwidthBooking(models.Model):
    """A VLL's committed information rate (bit/s) on one of its ports. ``Port.booked_bps`` is the sum."""

    port = models.ForeignKey(Port, on_delete=models.PROTECT, related_name="bookings")
    owner = models.UUIDField(db_column="holder")
    side = models.CharField(max_length=1)
    cir_bps = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "side"], name="a_vll_end_books_once"),
            models.CheckConstraint(condition=Q(cir_bps__gte=0), name="booked_rate_is_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.cir_bps} bit/s on {self.port_id}"


class CoreBooking(models.Model):
    """The load of a VLL's end on its router's cores. ``RouterLoad.booked`` is the sum.

    ``load`` is the rate (bit/s) of local cross-connects with the same cost
    (``portal.allocation.packet_capacity``).
    """

    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="core_bookings")
    owner = models.UUIDField(db_column="holder")
    side = models.CharField(max_length=1)
    load = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "side"], name="a_vll_end_books_cores_once"),
            models.CheckConstraint(condition=Q(load__gte=0), name="booked_load_is_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.load} on {self.router_id}"


class RouterLoad(models.Model):
    """The sum of a router's core bookings.

    The sum is not in the row of ``inventory.Router``, because each new intent locks that row to increase the
    generation. A booking therefore never waits for an intent.
    """

    router = models.OneToOneField(Router, on_delete=models.CASCADE, primary_key=True, related_name="+")
    booked = models.BigIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(booked__gte=0), name="a_routers_load_is_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.booked} on {self.router_id}"
