"""Facts."""

from django.db import models
from django.db.models import Q


class Event(models.Model):
    """A fact for timelines, audit and notifications.

    An event never changes, except for ``pending_notification`` and ``fan_out_retry_at``. It contains ids
    instead of relations, so that any app can announce events. Only events that agents report are deleted,
    after LONGLINE_ROUTER_EVENT_DAYS.
    """

    at = models.DateTimeField()
    kind = models.CharField(max_length=64)
    customer_id = models.BigIntegerField(null=True)
    vll_id = models.UUIDField(null=True)
    order_id = models.UUIDField(null=True)
    router_id = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=150, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    data = models.JSONField(default=dict)
    # True until the event's notifications are created. portal.notifications selects rows by this column.
    pending_notification = models.BooleanField(default=False, db_default=False, db_column="untold")
    # The earliest time of the next attempt to create the notifications; null without a failure.
    fan_out_retry_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["id"], condition=Q(pending_notification=True), name="event_untold"),
            models.Index(fields=["vll_id", "-id"], condition=Q(vll_id__isnull=False), name="event_by_vll"),
            models.Index(
                fields=["router_id", "-id"], condition=Q(router_id__isnull=False), name="event_by_router"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"
