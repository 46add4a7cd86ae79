"""Paths between two routers, which test frames verify."""

import uuid

from django.db import models
from django.db.models import F, Q

from portal.inventory.models import Router
from portal.vll.models.vll import VllEnd


class TunnelPath(models.Model):
    """The path between two routers over one address family, watched while tunnels of lines use it.

    ``a_router`` has the lower id. The row stays for its measurements after the last line has left.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    a_router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+", db_index=False)
    z_router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+")
    family = models.PositiveSmallIntegerField()
    # Whether lines in service use the path.
    in_use = models.BooleanField(default=True)
    # The largest IP packet that encapsulated frames of these lines need, in bytes.
    needed_ip_mtu = models.PositiveIntegerField(default=0, db_default=0)
    # When round trips are measured next.
    round_trips_due_at = models.DateTimeField()
    # The newest round trips: packets sent and received, and their times in µs.
    round_trips_at = models.DateTimeField(null=True)
    sent = models.PositiveIntegerField(default=0)
    received = models.PositiveIntegerField(default=0)
    min_us = models.PositiveIntegerField(null=True)
    mean_us = models.PositiveIntegerField(null=True)
    max_us = models.PositiveIntegerField(null=True)

    # The transport of the probe; "": no probe. Both routers must have the probe, which is a tunnel only for
    # test frames.
    probe_transport = models.CharField(max_length=10, blank=True, default="", db_default="")
    # The revision of the probe, increased with each change; 0 if there never was a probe.
    probe_revision = models.PositiveIntegerField(default=0, db_default=0)
    # Each router's newest answer about the probe, and the revision of that answer.
    a_answer = models.CharField(max_length=10, default="unasked", db_default="unasked")
    a_answer_revision = models.PositiveIntegerField(default=0, db_default=0)
    a_reason = models.JSONField(null=True)
    z_answer = models.CharField(max_length=10, default="unasked", db_default="unasked")
    z_answer_revision = models.PositiveIntegerField(default=0, db_default=0)
    z_reason = models.JSONField(null=True)
    # When test frames are sent next, when they were last sent, and the finding ("" if all arrived).
    probe_due_at = models.DateTimeField(null=True)
    probed_at = models.DateTimeField(null=True)
    finding = models.CharField(max_length=20, blank=True, default="", db_default="")
    # The largest IP packet (bytes) that passed in both directions in the last measurement, and the time of
    # the measurement. A measurement in which no frames passed changes neither value.
    verified_ip_mtu = models.PositiveIntegerField(null=True, db_column="proven_ip_mtu")
    verified_at = models.DateTimeField(null=True, db_column="proven_at")
    # Since when large packets are lost and small ones are not.
    black_hole_since = models.DateTimeField(null=True)

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
            models.CheckConstraint(
                condition=Q(verified_ip_mtu=None, verified_at=None)
                | Q(verified_ip_mtu__isnull=False, verified_at__isnull=False),
                name="what_is_proven_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(black_hole_since=None) | Q(verified_ip_mtu__isnull=False),
                name="a_black_hole_lets_small_packets_pass",
            ),
        ]
        indexes = [
            models.Index(
                fields=["probe_due_at"], condition=~Q(probe_transport=""), name="path_by_next_probe"
            ),
            models.Index(
                fields=["round_trips_due_at"], condition=Q(in_use=True), name="path_by_next_round_trips"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.a_router} – {self.z_router} (IPv{self.family})"

    def router(self, side: str) -> Router:
        return self.a_router if side == "a" else self.z_router

    def side_of(self, router_id: int) -> str:
        return "a" if router_id == self.a_router_id else "z"

    def answer(self, side: str) -> tuple[str, int]:
        """Return the newest answer of this side's router about the probe, and the revision of that answer."""
        if side == "a":
            return self.a_answer, self.a_answer_revision
        return self.z_answer, self.z_answer_revision

    def is_confirmed(self, side: str) -> bool:
        """Return whether this side's router has confirmed the present probe, or its removal."""
        wanted = VllEnd.Status.TESTING if self.probe_transport else VllEnd.Status.REMOVED
        return self.answer(side) == (wanted, self.probe_revision)
