import uuid
from datetime import datetime

from django.db import models
from django.db.models import F, Q

from portal.inventory.models.router import Router

# In characters; the agent takes as many bytes on the router itself.
LONGEST_REASON = 200


class RouterFreeze(models.Model):
    """From when nothing is changed on a router, on somebody's word, until somebody has looked what it left.

    One that an operator on the router began has the id that its agent gave it, and ``by`` "".
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="freezes")
    reason = models.CharField(max_length=LONGEST_REASON)
    by = models.CharField(max_length=150, blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField()
    # When the agent first said that it keeps it; null: it has not yet.
    kept_since = models.DateTimeField(null=True, blank=True)
    # When the portal was asked to end its own before its time.
    end_asked_at = models.DateTimeField(null=True, blank=True)
    # When its agent said that it ended, or keeps it no more; what it left is looked at from then on.
    ended_at = models.DateTimeField(null=True, blank=True)
    # When somebody had looked, or there was nothing to look at: ``looked_by`` "".
    closed_at = models.DateTimeField(null=True, blank=True)
    looked_by = models.CharField(max_length=150, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["router"],
                condition=Q(closed_at__isnull=True) & ~Q(by=""),
                name="a_router_is_frozen_once_at_a_time",
            ),
            models.CheckConstraint(condition=Q(until__gt=F("since")), name="a_freeze_ends_after_it_begins"),
        ]

    def __str__(self) -> str:
        return f"{self.router} since {self.since:%Y-%m-%d %H:%M}"

    def is_ending(self, now: datetime) -> bool:
        """Whether it has ended, or ends as soon as its agent knows of that."""
        return self.ended_at is not None or self.end_asked_at is not None or self.until <= now
