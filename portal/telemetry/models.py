"""Counter samples of agents, monthly figures, and the status history of lines.

A sample contains the difference of the counters over an interval, never running totals.
"""

from typing import Any

from django.conf import settings
from django.db import models

from portal.inventory.models import Router, RouterSilence


class AgentClock(models.Model):
    """Data of the agent's last counter report: the offset of the router's clock, and sample numbers.

    ``offset_ms``: portal time minus the time of the router's wall clock. ``sample_offset_ms``: portal time
    minus the time by which the samples are stored. ``boot_clocks``: see ``sample_times.BootClock``.
    """

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="agent_clock")
    boot_id = models.UUIDField()
    offset_ms = models.BigIntegerField()
    sample_offset_ms = models.BigIntegerField(default=0, db_default=0)
    boot_clocks = models.JSONField(default=list, db_default=models.Value([], models.JSONField()))
    measured_at = models.DateTimeField()
    # The number of samples that this run of the agent dropped because its store was full.
    dropped = models.BigIntegerField(default=0)
    # The highest sample number received with this boot_id; null if unknown.
    newest_seq = models.BigIntegerField(null=True)
    # The start of the 5-minute bucket marked as stale for the last reported ends, and a digest of these ends.
    marked_at = models.DateTimeField(null=True)
    marked_ends = models.CharField(max_length=32, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.router}: {self.offset_ms} ms"


class Sample(models.Model):
    """The count of one VLL end over (from_at, to_at]. The table is partitioned by the day of ``to_at``."""

    pk = models.CompositePrimaryKey("to_at", "vll_id", "side", "boot_id", "seq")
    to_at = models.DateTimeField()
    vll_id = models.UUIDField()
    side = models.CharField(max_length=1)
    boot_id = models.UUIDField()
    seq = models.BigIntegerField()
    from_at = models.DateTimeField()
    router_id = models.BigIntegerField()
    in_bytes = models.BigIntegerField()
    in_packets = models.BigIntegerField()
    out_bytes = models.BigIntegerField()
    out_packets = models.BigIntegerField()
    # The policer's counts; all null without a policer or without usable counters.
    conform_bytes = models.BigIntegerField(null=True)
    conform_packets = models.BigIntegerField(null=True)
    exceed_bytes = models.BigIntegerField(null=True)
    exceed_packets = models.BigIntegerField(null=True)
    violate_bytes = models.BigIntegerField(null=True)
    violate_packets = models.BigIntegerField(null=True)
    # Frames that VPP dropped; null if unknown.
    in_drops = models.BigIntegerField(null=True)
    out_drops = models.BigIntegerField(null=True)
    simulated = models.BooleanField(default=False)

    class Meta:
        # sql/samples.sql declares the table, because Django does not support partitions.
        managed = False
        db_table = "telemetry_sample"

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side} {self.to_at}"


class MonthlyPercentile(models.Model):
    """The 95th percentiles (bit/s) of the 5-minute rates of an end in one calendar month (UTC).

    A row never changes. Rates are null if there are no counts of the end in the month. ``counted``: the
    number of 5-minute buckets in the percentile. ``missing``: the number of expected buckets without counts.
    ``correction``: 0, or the number of a correction that release 0.1.0 stored. The last correction applies.
    """

    vll_id = models.UUIDField()
    side = models.CharField(max_length=1)
    month = models.DateField()
    in_bps = models.BigIntegerField(null=True)
    out_bps = models.BigIntegerField(null=True)
    max_bps = models.BigIntegerField(null=True)
    counted = models.PositiveIntegerField()
    missing = models.PositiveIntegerField()
    simulated = models.BooleanField()
    frozen_at = models.DateTimeField()
    correction = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["vll_id", "month", "side", "correction"], name="a_month_is_frozen_once"
            ),
            models.CheckConstraint(condition=models.Q(month__day=1), name="a_month_is_named_by_its_first"),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side} {self.month:%Y-%m}"


class FrozenMonth(models.Model):
    """A calendar month (UTC) with all percentiles frozen, so that its 5-minute rows may be dropped."""

    month = models.DateField(unique=True)
    frozen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(month__day=1), name="a_frozen_month_is_named_by_its_first"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}"


class OperInterval(models.Model):
    """The time during which a VLL in service had one oper status: ``[began_at, ended_at)``.

    ``ended_at`` is null while the VLL has that status. A trigger on events maintains the rows, so they always
    agree with the events.
    """

    vll_id = models.UUIDField()
    status = models.CharField(max_length=15)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # Whether the status was not observed, but derived later from a router's silence
    # (portal.telemetry.line_status_in_silence).
    judged = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["vll_id"],
                condition=models.Q(ended_at__isnull=True),
                name="a_vll_has_one_oper_status_at_a_time",
            ),
        ]
        indexes = [models.Index(fields=["vll_id", "began_at"], name="oper_interval_by_vll")]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.status} from {self.began_at:%Y-%m-%d %H:%M:%S}"


class UnjudgedFiveMinutes(models.Model):
    """A 5-minute bucket of a silence with counts that are newer than the silence's last judgement."""

    pk = models.CompositePrimaryKey("silence_id", "start_at")
    silence = models.ForeignKey(
        RouterSilence, on_delete=models.CASCADE, related_name="unjudged", db_index=False
    )
    start_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.silence}: {self.start_at:%Y-%m-%d %H:%M:%S}"


class AgentApiUptime(models.Model):
    """A time in which the agent API received reports, as its processes record it every few seconds."""

    began_at = models.DateTimeField()
    last_recorded_at = models.DateTimeField(db_column="seen_at")

    class Meta:
        indexes = [models.Index(fields=["last_recorded_at"], name="agent_api_uptime_by_end")]

    def __str__(self) -> str:
        return f"{self.began_at:%Y-%m-%d %H:%M:%S} to {self.last_recorded_at:%Y-%m-%d %H:%M:%S}"


class Quarantine(models.Model):
    """A decision about samples of a wrong clock in release 0.1.0 (ADR 27), for the audit trail only."""

    class State(models.TextChoices):
        UNDECIDED = "undecided"
        ACCEPTED = "accepted"
        DISCARDED = "discarded"
        EXPIRED = "expired"

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="quarantines")
    reason = models.CharField(max_length=50)
    month = models.DateField(null=True)
    offset_ms = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.UNDECIDED)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    why = models.CharField(max_length=500, default="")

    def __str__(self) -> str:
        return f"{self.router}: {self.reason} {self.state}"


class Multirange(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's int8multirange. Only the first migration uses this field."""

    def db_type(self, connection: Any) -> str:
        return "int8multirange"


class RouterEvent(models.Model):
    """The record that an event of an agent has been stored. The stored event is an ``events.Event``."""

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+", db_index=False)
    boot_id = models.UUIDField()
    seq = models.BigIntegerField()
    stored_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["router", "boot_id", "seq"], name="router_event_stored_once")
        ]

    def __str__(self) -> str:
        return f"{self.router} {self.boot_id} {self.seq}"
