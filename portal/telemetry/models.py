"""Counter samples as the agents measured them: differences over an interval, never running totals."""

from django.db import models

from portal.inventory.models import Router


class AgentClock(models.Model):
    """The newest known offset of an agent's clock: portal time minus agent time, in milliseconds."""

    router = models.OneToOneField(Router, on_delete=models.CASCADE, related_name="agent_clock")
    boot_id = models.UUIDField()
    offset_ms = models.BigIntegerField()
    measured_at = models.DateTimeField()
    # Samples that this run of the agent had to drop because its store was full.
    dropped = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.router}: {self.offset_ms} ms"


class Sample(models.Model):
    """What one VLL end counted over (from_at, to_at], agent's clock; partitioned by day of ``to_at``."""

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
    # Of the policer; all null where none worked, or where its counters tell nothing.
    conform_bytes = models.BigIntegerField(null=True)
    conform_packets = models.BigIntegerField(null=True)
    exceed_bytes = models.BigIntegerField(null=True)
    exceed_packets = models.BigIntegerField(null=True)
    violate_bytes = models.BigIntegerField(null=True)
    violate_packets = models.BigIntegerField(null=True)
    simulated = models.BooleanField(default=False)

    class Meta:
        # The table is declared in the first migration: Django has no words for partitions.
        managed = False
        db_table = "telemetry_sample"

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side} {self.to_at}"


class MonthlyPercentile(models.Model):
    """The 95th percentiles (bit/s) of an end's 5 minutes of one calendar month (UTC); never changed again.

    None of the rates where nothing was counted. ``missing``: 5 minutes that ought to have been counted and
    were not; ``counted``: those the percentile is of.
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

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["vll_id", "month", "side"], name="a_month_is_frozen_once"),
            models.CheckConstraint(condition=models.Q(month__day=1), name="a_month_is_named_by_its_first"),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} {self.side} {self.month:%Y-%m}"


class FrozenMonth(models.Model):
    """A calendar month (UTC) whose percentiles are all frozen; its 5 minutes are needed no more."""

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
    """How long a VLL in service had an oper status: ``[began_at, ended_at)``; null = it still has it.

    Kept by a trigger on the events, so that it is as true as these.
    """

    vll_id = models.UUIDField()
    status = models.CharField(max_length=15)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # Not what was observed then, but what was found out of a silence since (portal.telemetry.silences).
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


class DoorUptime(models.Model):
    """From when to when the agent door took reports, as its processes say every few seconds."""

    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["seen_at"], name="door_uptime_by_end")]

    def __str__(self) -> str:
        return f"{self.began_at:%Y-%m-%d %H:%M:%S} to {self.seen_at:%Y-%m-%d %H:%M:%S}"


class QuarantinedSample(models.Model):
    """A sample that claims to come from the future or that contradicts itself: kept, shown, never drawn."""

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+")
    received_at = models.DateTimeField()
    reason = models.CharField(max_length=50)
    sample = models.JSONField()

    def __str__(self) -> str:
        return f"{self.router}: {self.reason}"


class RouterEvent(models.Model):
    """That an event of an agent has been stored; the event itself is an ``events.Event``."""

    router = models.ForeignKey(Router, on_delete=models.CASCADE, related_name="+")
    boot_id = models.UUIDField()
    seq = models.BigIntegerField()
    stored_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["router", "boot_id", "seq"], name="router_event_stored_once")
        ]

    def __str__(self) -> str:
        return f"{self.router} {self.boot_id} {self.seq}"
