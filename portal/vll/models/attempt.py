from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from portal.inventory.models import Router


class Attempt(models.Model):
    """One try to converge a router, and those after it that came to the same.

    Evidence: triggers refuse all changes but the counting of another time, and all removal but that of what
    is old, and neither the last word about an end nor of an open order (portal.vll.operations.attempt_log).
    """

    class Outcome(models.TextChoices):
        ANSWERED = "answered", _("Answered")
        REFUSED = "refused", _("Refused")
        UNREACHABLE = "unreachable", _("Unreachable")

    router = models.ForeignKey(Router, on_delete=models.PROTECT, related_name="attempts", db_index=False)
    outcome = models.CharField(max_length=15, choices=Outcome)
    # What was wanted, whatever its number; "": nothing was sent, or before this was kept.
    content_sha256 = models.CharField(max_length=64, default="", db_default="")
    # The agent's answer (provisioning.attempt_evidence) or problem document; {"error": "..."} without one.
    answer = models.JSONField()
    # How often it came to this in a row; when it first began, and of the last time all the rest.
    times = models.PositiveIntegerField(default=1, db_default=1)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    generation = models.BigIntegerField()
    intent_sha256 = models.CharField(max_length=64)
    # It is old, and the last word about some end: it stays.
    kept = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes = [
            models.Index(fields=["router", "-id"], name="attempt_by_router"),
            models.Index(fields=["started_at"], condition=Q(kept=False), name="attempt_to_forget"),
            # Without a list of what is still to be indexed, which each look-up would read.
            GinIndex(
                fields=["answer"], opclasses=["jsonb_path_ops"], fastupdate=False, name="attempt_by_answer"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router} generation {self.generation}: {self.outcome}"


class RouterConvergence(models.Model):
    """The worker at a router, and when the router may be tried again: one apply per router is in flight."""

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="convergence")
    claimed_until = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    last_answered_at = models.DateTimeField(null=True)
    # When it is asked again about what it has not confirmed, unless something changes before; null: at once.
    ask_at = models.DateTimeField(null=True)
    # Something that what it has not confirmed may have waited for changed since it was claimed.
    changed = models.BooleanField(default=False, db_default=False)
    # Counted up whenever something in the router's intent changes although no order wants it, and when the
    # NOC wants the intent sent again.
    wanted = models.BigIntegerField(default=0, db_default=0)
    # The value that ``wanted`` had when the last intent that the agent accepted was made.
    answered = models.BigIntegerField(default=0, db_default=0)
    # The same for the previous release, which reads and writes this flag instead of the two numbers: a
    # release later nobody reads it, and it is dropped.
    ask_anew = models.BooleanField(default=False, db_default=False)
    # When and by whom a reconciliation was requested that has not been carried out yet; and when a task for
    # it was last sent (portal.vll.router_operations.actions).
    reconcile_requested_at = models.DateTimeField(null=True)
    reconcile_requested_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    reconcile_sent_at = models.DateTimeField(null=True)
    # When the sweeper sent a message that nobody has claimed the router for since.
    resent_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.router}: {self.failures} failures"


def intent_is_wanted(prefix: str = "") -> Q:
    """RouterConvergence rows whose router is to get an intent although no order wants it.

    ``prefix`` is the path to the rows, with its ``__``.
    """
    newer = Q(**{f"{prefix}wanted__gt": F(f"{prefix}answered")})
    return newer | Q(**{f"{prefix}ask_anew": True})
