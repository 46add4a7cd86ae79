import uuid

from django.db import models
from django.db.models import Q

from portal.allocation.models import GreKeyLease, GrePairLease, VniLease
from portal.inventory.models import Router
from portal.vll.models.vll import Vll, VllEnd


class VllTombstone(models.Model):
    """An end that a router has to remove and has not confirmed as removed yet.

    The end has moved to another router, or its line has ended without this router's confirmation. The row is
    deleted when the router confirms. Until then, ``leases`` is the owner of the resources that the end
    needed on its port and router. ``tunnels`` are the tunnels that the router may still have. Their leases
    may have any owner. While the line has not ended, a trigger refuses a tombstone on the router where the
    end is now.
    """

    vll = models.ForeignKey(Vll, on_delete=models.PROTECT, related_name="tombstones", db_index=False)
    side = models.CharField(max_length=1)
    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="vll_tombstones")
    # The first revision of the line without the end on this router.
    revision = models.PositiveIntegerField()
    leases = models.UUIDField(default=uuid.uuid4, db_index=True)
    # The router stops managing the end, and restores these tags, instead of deleting the end (ADR 43).
    release = models.BooleanField(default=False, db_default=False)
    access_tag = models.CharField(max_length=63, blank=True, default="", db_default="")
    tunnel_tag = models.CharField(max_length=63, blank=True, default="", db_default="")
    # The router's newest answer about the end.
    status = models.CharField(max_length=10, choices=VllEnd.Status, default=VllEnd.Status.UNANSWERED)
    status_at = models.DateTimeField(null=True)
    reason = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["vll", "side", "router"], name="one_tombstone_per_end_and_router"
            ),
            models.CheckConstraint(condition=Q(side__in=["a", "z"]), name="tombstone_side_is_a_or_z"),
            models.CheckConstraint(condition=Q(revision__gte=1), name="tombstone_revision_is_a_revision"),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side} left {self.router}"


class TombstoneTunnel(models.Model):
    """A VNI, GRE key or pair of tunnel addresses on which a tombstone's router may still send and receive.

    A lease that a row of this table names cannot be deleted, so no other line gets its number or addresses.
    When the line releases the lease, the lease is quarantined.
    """

    tombstone = models.ForeignKey(VllTombstone, on_delete=models.CASCADE, related_name="tunnels")
    vni = models.ForeignKey(VniLease, on_delete=models.PROTECT, null=True, related_name="+")
    gre_key = models.ForeignKey(GreKeyLease, on_delete=models.PROTECT, null=True, related_name="+")
    gre_pair = models.ForeignKey(GrePairLease, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(vni__isnull=False, gre_key__isnull=True, gre_pair__isnull=True)
                | Q(vni__isnull=True, gre_key__isnull=False, gre_pair__isnull=True)
                | Q(vni__isnull=True, gre_key__isnull=True, gre_pair__isnull=False),
                name="a_tunnel_has_a_vni_a_gre_key_or_a_gre_pair",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tombstone} with {self.vni or self.gre_key or self.gre_pair}"


class EndMove(models.Model):
    """The move of an end away from a router, and its time.

    The counters of the end on that router belong to the line until this time.
    """

    vll = models.ForeignKey(Vll, on_delete=models.CASCADE, related_name="moves")
    side = models.CharField(max_length=1)
    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="+", db_index=False)
    left_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(side__in=["a", "z"]), name="moved_side_is_a_or_z"),
        ]
        indexes = [models.Index(fields=["router", "vll"], name="end_move_by_router")]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side} left {self.router} at {self.left_at:%Y-%m-%d %H:%M:%S}"
