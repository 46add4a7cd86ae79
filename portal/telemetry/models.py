"""Counter samples of agents, their quarantine, monthly figures, and the status history of lines.

A sample contains the difference of the counters over an interval, never running totals.
"""

from typing import Any

from django.conf import settings
from django.db import models

from portal.inventory.models import Router, RouterSilence


class AgentClock(models.Model):
    """Data of the agent's last counter report: the offset of the agent's clock, and the numbers of the
    samples.

    The offset is portal time minus agent time, in ms.
    """

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="agent_clock")
    boot_id = models.UUIDField()
    offset_ms = models.BigIntegerField()
    measured_at = models.DateTimeField()
    # The number of samples that this run of the agent dropped because its store was full.
    dropped = models.BigIntegerField(default=0)
    # The highest sample number received with this boot_id; null if unknown.
    newest_seq = models.BigIntegerField(null=True)
    # The start of the 5-minute bucket that is marked as stale for the last reported ends, and a digest of
    # these ends.
    marked_at = models.DateTimeField(null=True)
    marked_ends = models.CharField(max_length=32, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.router}: {self.offset_ms} ms"


class Sample(models.Model):
    """The count of one VLL end over (from_at, to_at] by the agent's clock.

    The table is partitioned by the day of ``to_at``.
    """

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
    ``correction``: 0 for the first freeze. If the NOC accepts quarantined samples later, a new row with the
    next number is added.
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
    """A 5-minute bucket of a router's silence with counts that are newer than the last judgement of the
    silence.
    """

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
    """Samples of a router that were quarantined for the same reason. The NOC decides about them together.

    If the time of the samples can be corrected, all samples have the same clock offset and belong to the same
    calendar month (UTC, corrected time). The samples are added up by 5-minute bucket
    (QuarantinedFiveMinutes). If the time cannot be corrected, ``month`` is null and the samples cannot be
    accepted.
    """

    class State(models.TextChoices):
        UNDECIDED = "undecided"
        ACCEPTED = "accepted"
        DISCARDED = "discarded"
        # The NOC did not decide in time.
        EXPIRED = "expired"

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="quarantines")
    reason = models.CharField(max_length=50)
    month = models.DateField(null=True)
    # Portal time minus router time, in ms, of the report with the first of these samples.
    offset_ms = models.BigIntegerField()
    # The first and last time by the router's clock, in milliseconds since the epoch. Any value is possible.
    first_ms = models.BigIntegerField()
    last_ms = models.BigIntegerField()
    # Numbers of ends, added up over the samples. ``waited``: the number of ends in samples that the agent
    # sent late (sample_quarantine.WAITED).
    samples = models.BigIntegerField(default=0)
    waited = models.BigIntegerField(default=0)
    first_received_at = models.DateTimeField()
    last_received_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.UNDECIDED)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    why = models.CharField(max_length=500, default="")
    # When the portal finished adding the accepted samples to their month.
    counted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state="undecided", decided_at=None)
                | (~models.Q(state="undecided") & models.Q(decided_at__isnull=False)),
                name="a_decision_has_its_time",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="accepted") | models.Q(month__isnull=False),
                name="what_has_no_time_is_not_accepted",
            ),
            models.CheckConstraint(
                condition=models.Q(month=None) | models.Q(month__day=1),
                name="a_quarantine_names_its_month_by_its_first",
            ),
        ]
        indexes = [
            models.Index(
                fields=["router", "month"],
                condition=models.Q(counted_at=None, state__in=("undecided", "accepted")),
                name="quarantine_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router}: {self.reason} {self.state}"


class QuarantinedEnd(models.Model):
    """An end of a line in a quarantine.

    ``added`` and ``left_out``: the numbers of its 5-minute buckets that acceptance added or left out.
    """

    quarantine = models.ForeignKey(Quarantine, on_delete=models.CASCADE, related_name="ends", db_index=False)
    vll_id = models.UUIDField()
    side = models.CharField(max_length=1)
    samples = models.BigIntegerField()
    added = models.PositiveIntegerField(default=0)
    left_out = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["quarantine", "vll_id", "side"], name="an_end_is_set_aside_once"),
        ]
        indexes = [models.Index(fields=["vll_id"], name="quarantined_end_by_vll")]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side}: {self.samples}"


class QuarantinedFiveMinutes(models.Model):
    """The quarantined count of an end in a 5-minute bucket of the corrected time.

    ``policed``: whether a policer was counted. ``accepted``: whether the count is part of the line's figures,
    as samples are.
    """

    pk = models.CompositePrimaryKey("quarantine_id", "vll_id", "side", "start_at", "policed")
    quarantine = models.ForeignKey(
        Quarantine, on_delete=models.CASCADE, related_name="five_minutes", db_index=False
    )
    vll_id = models.UUIDField()
    side = models.CharField(max_length=1)
    start_at = models.DateTimeField()
    policed = models.BooleanField()
    covered_ms = models.BigIntegerField()
    in_bytes = models.FloatField()
    in_packets = models.FloatField()
    out_bytes = models.FloatField()
    out_packets = models.FloatField()
    conform_bytes = models.FloatField(null=True)
    conform_packets = models.FloatField(null=True)
    exceed_bytes = models.FloatField(null=True)
    exceed_packets = models.FloatField(null=True)
    violate_bytes = models.FloatField(null=True)
    violate_packets = models.FloatField(null=True)
    simulated = models.BooleanField()
    accepted = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(covered_ms__gt=0), name="quarantined_five_minutes_cover_time"
            ),
        ]
        indexes = [models.Index(fields=["vll_id", "start_at"], name="quarantined_five_minutes")]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side} {self.start_at}"


class Multirange(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's int8multirange: a set of whole numbers, mostly consecutive."""

    def db_type(self, connection: Any) -> str:
        return "int8multirange"


class QuarantinedRun(models.Model):
    """The numbers of the quarantined samples of one run of an agent (``boot_id``).

    A sample that the agent sends again counts as a duplicate, before and after the decision.
    """

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+", db_index=False)
    boot_id = models.UUIDField()
    seqs = Multirange()
    last_received_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["router", "boot_id"], name="a_run_is_noted_once")]

    def __str__(self) -> str:
        return f"{self.router} {self.boot_id}"


class QuarantinedSample(models.Model):
    """An example of an unusable sample, which contradicts itself or has a time that cannot be corrected."""

    quarantine = models.ForeignKey(Quarantine, on_delete=models.CASCADE, related_name="examples")
    received_at = models.DateTimeField()
    reason = models.CharField(max_length=50)
    sample = models.JSONField()

    def __str__(self) -> str:
        return f"{self.quarantine}: {self.reason}"


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
