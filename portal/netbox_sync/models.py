"""Stored state between syncs: the NetBox objects of the portal's rows, and the results of runs."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from portal.vll.models import Vll


class NetboxObject(models.Model):
    """The identity of a row and a NetBox object, by ids: a rename in NetBox renames the row.

    ``kind`` is one of mapping.KINDS and determines the tables of ``row_id`` and ``netbox_id``. A link uses
    the lower id of its two interfaces. ``taken``: field -> the last imported value, to distinguish users'
    edits from earlier values of NetBox.
    """

    kind = models.CharField(max_length=10)
    netbox_id = models.BigIntegerField()
    row_id = models.BigIntegerField()
    taken = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "netbox_id"], name="a_netbox_object_is_one_row"),
            models.UniqueConstraint(fields=["kind", "row_id"], name="a_row_is_one_netbox_object"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.row_id} is NetBox's {self.netbox_id}"


class NetboxState(models.Model):
    """One row: the working worker, the times of the last read and write, and the current failure."""

    # Only the worker with this claim works. The claim of a killed worker expires.
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    # The time of NetBox's last webhook about a change.
    wanted_at = models.DateTimeField(null=True)
    # The beginning of the last import, and of the last import that read all of NetBox.
    tried_at = models.DateTimeField(null=True)
    imported_at = models.DateTimeField(null=True)
    # The time of the last check that found every line in NetBox up to date.
    exported_at = models.DateTimeField(null=True)
    release = models.CharField(max_length=50, blank=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    # The beginning and the reason of the current failure: {"code", "facts"}; null without a failure.
    failing_since = models.DateTimeField(null=True)
    error = models.JSONField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="there_is_one_netbox")]

    def __str__(self) -> str:
        return f"NetBox {self.release}"

    @property
    def change_waits(self) -> bool:
        """Whether NetBox has announced a change since the last import began."""
        return self.wanted_at is not None and (self.tried_at is None or self.wanted_at > self.tried_at)

    def may_be_tried(self, now: datetime) -> bool:
        """Whether the last try did not fail, or the pause after the failure is over."""
        return self.retry_at is None or self.retry_at <= now


class NetboxRun(models.Model):
    """One run with NetBox: its requester, its findings and its changes."""

    class Why(models.TextChoices):
        SCHEDULE = "schedule"
        WEBHOOK = "webhook"
        PERSON = "person"

    why = models.CharField(max_length=10, choices=Why)
    # The requester, "" for a scheduled run.
    requested_by = models.CharField(max_length=150, blank=True, db_column="asked_by")
    requested_at = models.DateTimeField(db_column="asked_at")
    dry = models.BooleanField(default=False)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # The current phase and progress. A null total is unknown.
    phase = models.CharField(max_length=30, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)
    # The first findings and changes, and the total number of each.
    changes = models.JSONField(default=list)
    findings = models.JSONField(default=list)
    counts = models.JSONField(default=dict)
    # The reason for an early end: {"code", "facts"}.
    error = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dry"],
                condition=Q(started_at__isnull=True, finished_at__isnull=True),
                name="one_netbox_run_of_a_kind_waits",
            ),
        ]

    def __str__(self) -> str:
        return f"NetBox run {self.pk}"


class ExportedVll(models.Model):
    """A line in NetBox. It is due while ``revision`` or ``lifecycle`` differs from the line's.

    ``written``: the L2VPN's id, the last written fields, and each end's interface (see ``line_export``).
    ``error``: the obstacle that keeps only this line out of NetBox: {"code", "facts"}.
    """

    vll = models.OneToOneField(Vll, on_delete=models.CASCADE, primary_key=True, related_name="netbox")
    revision = models.PositiveIntegerField(default=0)
    lifecycle = models.CharField(max_length=20, blank=True)
    written = models.JSONField(default=dict)
    done_at = models.DateTimeField(null=True)
    error = models.JSONField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["vll"], condition=Q(error__isnull=False), name="netbox_line_in_error"),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} in NetBox"


class NetboxL2vpn(models.Model):
    """A foreign L2VPN in NetBox whose identifier is the VNI of a found line, as of the last run.

    ``tenant``: its name and NetBox id, "" and null for none.
    """

    netbox_id = models.BigIntegerField(unique=True)
    identifier = models.BigIntegerField(db_index=True)
    name = models.CharField(max_length=100)
    tenant = models.CharField(max_length=100, blank=True)
    tenant_id = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return self.name
