import uuid
from datetime import timedelta

from django.db import models
from django.db.models import F, Q

from portal.accounts.models import Customer
from portal.inventory.models import Router
from portal.vll.activation_test_procedure import Finding
from portal.vll.models.order import Order
from portal.vll.models.vll import Vll, VllEnd
from portal.vll.states import AdminStatus


class ActivationTest(models.Model):
    """An activation test of a line (ITU-T Y.1564), at one revision. A trigger keeps its result permanently.

    The table keeps the name that release 0.1.0 uses.
    """

    class State(models.TextChoices):
        """The states of a test.

        A test is scheduled until its time comes. Then it waits until both routers have the tunnel and the
        frames have been counted.
        """

        SCHEDULED = "scheduled"
        WAITING = "waiting"
        PASSED = "passed"
        FAILED = "failed"
        NOT_TESTED = "not_tested"

    class Reason(models.TextChoices):
        """The reasons why a line did not pass or was not tested."""

        NOTHING_ARRIVES = Finding.NOTHING_ARRIVES.value
        LARGE_FRAMES_LOST = Finding.LARGE_FRAMES_LOST.value
        FRAMES_LOST = Finding.FRAMES_LOST.value
        NO_TUNNEL = "no-tunnel"
        ROUTER_CANNOT = "router-cannot"
        CALLED_OFF = "called-off"
        TOOK_TOO_LONG = "took-too-long"
        NOT_BEGUN = "not-begun"

    OPEN = (State.SCHEDULED, State.WAITING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    vll = models.ForeignKey(Vll, on_delete=models.PROTECT, related_name="activation_tests", db_index=False)
    # Null, like the revision, until a scheduled test begins.
    order = models.ForeignKey(Order, on_delete=models.PROTECT, null=True, related_name="activation_tests")
    # The revision of the line during the test. The next revision is handed over.
    revision = models.PositiveIntegerField(null=True)
    # The admin status of the line after the test has passed.
    admin_status_after = models.CharField(max_length=15, choices=AdminStatus, blank=True, default="")
    # The largest frame to send, as the line promises or as requested: bytes, without FCS and popped tags.
    frame = models.PositiveIntegerField()
    created_at = models.DateTimeField()
    # The user who requested the test; "" for a test that is part of an add or modify order.
    requested_by = models.CharField(max_length=150, blank=True, default="", db_column="asked_by")
    scheduled_for = models.DateTimeField(null=True)

    # For a line in service: when the portal sent its routers the request to disconnect the customer, and when
    # both routers had reconnected the customer.
    interrupted_at = models.DateTimeField(null=True)
    restored_at = models.DateTimeField(null=True)

    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    reason = models.CharField(max_length=20, choices=Reason, blank=True, default="")
    # The names of the routers that cannot send test frames.
    routers = models.JSONField(default=list)
    # In bytes; null: no size passed in both directions.
    largest_passed = models.PositiveIntegerField(null=True)
    # {"a_to_z": [{"frame", "sent", "received", "fragmented"}, ...], "z_to_a": [...]}
    directions = models.JSONField(default=dict)
    # {"sent", "received", "min", "avg", "max"}: small packets from A's tunnel address to Z's and back, in µs.
    round_trip_us = models.JSONField(null=True)
    # The line's transport, the assumptions about its path, and the routers that counted the frames:
    # {"transport", "path", "routers"}.
    conditions = models.JSONField(default=dict)
    # When the last attempt began, and when the test ended.
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # Until when a worker has claimed the test, and when the test may be retried after a failed attempt.
    claimed_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "vll_linetest"
        constraints = [
            models.UniqueConstraint(
                fields=["vll"], condition=Q(state="waiting"), name="a_vll_has_one_waiting_test"
            ),
            models.UniqueConstraint(
                fields=["vll"], condition=Q(state="scheduled"), name="a_vll_has_one_scheduled_test"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["scheduled", "waiting", "passed", "failed", "not_tested"]),
                name="test_state_is_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["scheduled", "waiting", "passed"], reason="")
                | Q(state__in=["failed", "not_tested"]) & ~Q(reason=""),
                name="a_test_that_did_not_pass_says_why",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["scheduled", "waiting"], finished_at__isnull=True)
                | ~Q(state__in=["scheduled", "waiting"]) & Q(finished_at__isnull=False),
                name="a_test_that_ended_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["scheduled", "not_tested"])
                | Q(order__isnull=False, revision__isnull=False),
                name="a_test_that_began_has_an_order",
            ),
            models.CheckConstraint(
                condition=~Q(state="scheduled") | Q(scheduled_for__isnull=False, order__isnull=True),
                name="a_scheduled_test_has_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(state="passed") | Q(largest_passed=F("frame")),
                name="a_passed_test_carried_the_largest_frame",
            ),
        ]
        indexes = [
            models.Index(fields=["vll", "-created_at"], name="line_test_by_vll"),
            models.Index(fields=["finished_at"], name="line_test_by_end"),
            models.Index(
                fields=["vll", "interrupted_at"],
                condition=Q(interrupted_at__isnull=False),
                name="line_test_by_interruption",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} revision {self.revision}: {self.state}"

    @property
    def customer(self) -> Customer:
        return self.vll.customer

    @property
    def interruption(self) -> timedelta | None:
        """Return the upper bound of the time for which the test interrupted the line.

        Return None if the test did not interrupt the line, or if the interruption is not over yet.
        """
        if self.interrupted_at is None or self.restored_at is None:
            return None
        return self.restored_at - self.interrupted_at


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

    # The transport of the probe, a tunnel only for test frames at both routers; "": no probe.
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
