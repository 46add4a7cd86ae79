import uuid

from django.db import models
from django.db.models import F, Q

from portal.inventory.models import Router


class TunnelPath(models.Model):
    """The way between two routers over one address family, watched as long as lines' tunnels take it.

    ``a_router`` is the one with the lower id. Kept when its last line is gone, for what was measured on it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    a_router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+")
    z_router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+")
    family = models.PositiveSmallIntegerField()
    # Whether lines in service take it.
    in_use = models.BooleanField(default=True)
    # When packets are to be timed next.
    round_trips_due_at = models.DateTimeField()
    # The newest round trips: how many packets were sent and came back, and how long those took, in µs.
    round_trips_at = models.DateTimeField(null=True)
    sent = models.PositiveIntegerField(default=0)
    received = models.PositiveIntegerField(default=0)
    min_us = models.PositiveIntegerField(null=True)
    mean_us = models.PositiveIntegerField(null=True)
    max_us = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["a_router", "z_router", "family"], name="two_routers_have_one_path_for_each_family"
            ),
            models.CheckConstraint(
                condition=Q(a_router__lt=F("z_router")), name="a_path_begins_at_the_lower_router"
            ),
            models.CheckConstraint(condition=Q(family__in=[4, 6]), name="a_path_is_of_a_known_family"),
            models.CheckConstraint(
                condition=Q(received__lte=F("sent")), name="no_more_packets_come_back_than_were_sent"
            ),
            models.CheckConstraint(
                condition=Q(received=0, min_us=None, mean_us=None, max_us=None)
                | Q(received__gt=0, min_us__lte=F("mean_us"), mean_us__lte=F("max_us")),
                name="what_came_back_took_its_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["round_trips_due_at"], condition=Q(in_use=True), name="path_by_next_round_trips"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.a_router} – {self.z_router} (IPv{self.family})"
