import uuid

from django.db import models
from django.db.models import F, Q

from portal.accounts.models import Customer
from portal.vll.line_test_procedure import Finding
from portal.vll.models.order import Order
from portal.vll.models.vll import Vll
from portal.vll.states import AdminStatus


class LineTest(models.Model):
    """A test of a line with frames, at one revision. A trigger keeps its result for ever."""

    class State(models.TextChoices):
        """Waiting until both routers have the tunnel, and then until its frames are counted."""

        WAITING = "waiting"
        PASSED = "passed"
        FAILED = "failed"
        NOT_TESTED = "not_tested"

    class Reason(models.TextChoices):
        """Why a line did not pass, or was not tested."""

        NOTHING_ARRIVES = Finding.NOTHING_ARRIVES.value
        LARGE_FRAMES_LOST = Finding.LARGE_FRAMES_LOST.value
        FRAMES_LOST = Finding.FRAMES_LOST.value
        NO_TUNNEL = "no-tunnel"
        ROUTER_CANNOT = "router-cannot"
        CALLED_OFF = "called-off"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    vll = models.ForeignKey(Vll, on_delete=models.PROTECT, related_name="line_tests")
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="line_tests")
    # Of the line while it is tested; the next one is handed over.
    revision = models.PositiveIntegerField()
    # What the line's admin status is to be once the test has passed.
    admin_status_after = models.CharField(max_length=15, choices=AdminStatus)
    # The largest promised frame in bytes, without FCS and popped tags.
    frame = models.PositiveIntegerField()
    created_at = models.DateTimeField()

    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    reason = models.CharField(max_length=20, choices=Reason, blank=True, default="")
    # The routers that cannot send test frames.
    routers = models.JSONField(default=list)
    # Bytes; null: no size passed both ways.
    largest_passed = models.PositiveIntegerField(null=True)
    # {"a_to_z": [{"frame", "sent", "received", "fragmented"}, ...], "z_to_a": [...]}
    directions = models.JSONField(default=dict)
    # {"sent", "received", "min", "avg", "max"}: small packets from A's tunnel address to Z's and back, in µs.
    round_trip_us = models.JSONField(null=True)
    # The line then, what was assumed of the underlay, and who counted: {"transport", "path", "routers"}.
    conditions = models.JSONField(default=dict)
    # From the first frame on, of the last try.
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # The worker at it, and when it may be tried again after it could not be carried out.
    claimed_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["vll"], condition=Q(state="waiting"), name="a_vll_has_one_waiting_test"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "passed", "failed", "not_tested"]),
                name="test_state_is_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "passed"], reason="")
                | Q(state__in=["failed", "not_tested"]) & ~Q(reason=""),
                name="a_test_that_did_not_pass_says_why",
            ),
            models.CheckConstraint(
                condition=Q(state="waiting", finished_at__isnull=True)
                | ~Q(state="waiting") & Q(finished_at__isnull=False),
                name="a_test_that_ended_has_a_time",
            ),
            models.CheckConstraint(
                condition=~Q(state="passed") | Q(largest_passed=F("frame")),
                name="a_passed_test_carried_the_largest_frame",
            ),
        ]
        indexes = [
            models.Index(fields=["vll", "-created_at"], name="line_test_by_vll"),
            models.Index(fields=["finished_at"], name="line_test_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} revision {self.revision}: {self.state}"

    @property
    def customer(self) -> Customer:
        return self.vll.customer
