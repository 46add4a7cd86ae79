import uuid

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from portal.allocation.models import GreKeyLease, GrePairLease, VniLease
from portal.inventory.models import Router
from portal.vll.models.vll import Vll, VllEnd


class Attempt(models.Model):
    """An attempt to converge a router. Consecutive attempts with the same result share one row.

    Attempts are evidence. Triggers permit two updates: to count another attempt, and to set ``kept``. The
    triggers refuse to delete recent rows, the newest row of a router, the last answer about an end, and
    attempts of open orders (portal.vll.operations.order_progress).
    """

    class Outcome(models.TextChoices):
        ANSWERED = "answered", _("Answered")
        REFUSED = "refused", _("Refused")
        UNREACHABLE = "unreachable", _("Unreachable")

    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    outcome = models.CharField(max_length=15, choices=Outcome)
    # A digest of the wanted state, without its generation; "": nothing was sent, or the row predates the
    # column.
    content_sha256 = models.CharField(max_length=64, default="", db_default="")
    # The agent's answer (provisioning.convergence) or problem document; {"error": "..."} without one.
    answer = models.JSONField()
    # The number of attempts in a row with this result, and when the first one began. The other columns
    # describe the last attempt.
    times = models.PositiveIntegerField(default=1, db_default=1)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    generation = models.BigIntegerField()
    intent_sha256 = models.CharField(max_length=64)
    # This row is old but has the last answer about some end, so it is kept.
    kept = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes = [
            models.Index(fields=["router", "-id"], name="attempt_by_router"),
            models.Index(fields=["started_at"], condition=Q(kept=False), name="attempt_to_forget"),
            # With fastupdate, the index would have a list of pending entries that each look-up reads in full.
            GinIndex(
                fields=["answer"], opclasses=["jsonb_path_ops"], fastupdate=False, name="attempt_by_answer"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router} generation {self.generation}: {self.outcome}"


class RouterConvergence(models.Model):
    """The state of converging a router: the worker that has claimed it, and the time of the next attempt.

    Only one worker converges a router at a time.
    """

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="convergence")
    claimed_until = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    last_answered_at = models.DateTimeField(null=True)
    # When a worker queries the router about unconfirmed ends next; null: now. A change can cause an earlier
    # query.
    next_query_at = models.DateTimeField(null=True, db_column="ask_at")
    # Whether a change has occurred since a worker claimed the router. Unconfirmed ends may have waited for
    # the change.
    changed = models.BooleanField(default=False, db_default=False)
    # Increased when the intent changes without an order, and when the NOC wants it sent again.
    wanted = models.BigIntegerField(default=0, db_default=0)
    # The value of ``wanted`` in the last intent that the agent accepted.
    answered = models.BigIntegerField(default=0, db_default=0)
    # The previous release reads and writes this flag instead of ``wanted`` and ``answered``. The next release
    # drops the column.
    intent_requested = models.BooleanField(default=False, db_default=False, db_column="ask_anew")
    # The pending reconciliation: when and by whom it was requested
    # (portal.vll.convergence.requests).
    reconcile_requested_at = models.DateTimeField(null=True)
    reconcile_requested_by = models.CharField(max_length=150, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.router}: {self.failures} failures"


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
