import uuid
from datetime import timedelta

from django.db import models
from django.db.models import F, Q

from portal.accounts.models import Customer
from portal.vll.activation_test_procedure import Finding
from portal.vll.models.order import Order
from portal.vll.models.vll import Vll
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
