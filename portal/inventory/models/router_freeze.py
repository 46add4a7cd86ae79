import uuid
from datetime import datetime

from django.db import models
from django.db.models import F, Q

from portal.inventory.models.router import Router

# In characters. For a freeze that begins on the router, the agent accepts the same number of bytes.
LONGEST_REASON = 200


class RouterFreeze(models.Model):
    """A period in which nothing is changed on a router, until an operator acknowledges the differences.

    If an operator began the freeze on the router, the agent chose its id, and ``by`` is "".
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="freezes")
    reason = models.CharField(max_length=LONGEST_REASON)
    by = models.CharField(max_length=150, blank=True)
    since = models.DateTimeField()
    until = models.DateTimeField()
    # When the agent first reported that it keeps the freeze; null: not yet.
    kept_since = models.DateTimeField(null=True, blank=True)
    # When a user requested an early end of a freeze of the portal.
    end_requested_at = models.DateTimeField(null=True, blank=True, db_column="end_asked_at")
    # When the agent reported the end of the freeze, or no longer reported the freeze. From then on, an
    # operator can check the differences.
    ended_at = models.DateTimeField(null=True, blank=True)
    # When an operator acknowledged the differences, or when the freeze was closed without an acknowledgement.
    # In the second case, ``acknowledged_by`` is "".
    closed_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, db_column="looked_by")

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
        """Return whether the freeze has ended, or ends as soon as its agent learns of the end."""
        return self.ended_at is not None or self.end_requested_at is not None or self.until <= now
