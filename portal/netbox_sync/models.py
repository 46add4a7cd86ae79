"""The state of the synchronization with NetBox: connected objects, exported lines, and results of runs."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from portal.vll.models import Vll


class NetboxObject(models.Model):
    """The connection between a row of the portal and a NetBox object.

    The connection uses ids, so that a renamed object keeps its row. ``kind`` is one of import_mapping.KINDS,
    and determines the tables of ``row_id`` and ``netbox_id``. For a link, ``netbox_id`` is the lower id of
    its two interfaces.
    ``taken``: the last imported values by field. By them, the import distinguishes users' edits from earlier
    values of NetBox.
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
    """The only row with the state: the worker's claim, last import, last export, and current failure."""

    # The worker with this claim is the only one that may use NetBox. The claim of a killed worker expires.
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    # When NetBox last announced a change by webhook.
    wanted_at = models.DateTimeField(null=True)
    # When the last import began, and when the last complete import began.
    tried_at = models.DateTimeField(null=True)
    imported_at = models.DateTimeField(null=True)
    # When the last check of all lines was completed.
    exported_at = models.DateTimeField(null=True)
    release = models.CharField(max_length=50, blank=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    # When the current failure began, and its reason: {"code", "facts"}. Null without a failure.
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
        """Return whether an attempt is allowed: no failure, or the pause after the last failure is over."""
        return self.retry_at is None or self.retry_at <= now


class NetboxRun(models.Model):
    """A synchronization with NetBox: requester, progress, findings and changes."""

    class Why(models.TextChoices):
        SCHEDULE = "schedule"
        WEBHOOK = "webhook"
        PERSON = "person"

    why = models.CharField(max_length=10, choices=Why)
    # The name of the user who requested the run; "" if no user did.
    requested_by = models.CharField(max_length=150, blank=True, db_column="asked_by")
    requested_at = models.DateTimeField(db_column="asked_at")
    dry = models.BooleanField(default=False)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # The current phase, the number of handled objects, and the total number; null if unknown.
    phase = models.CharField(max_length=30, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)
    # The first changes and findings (at most sync_run.KEPT_ROWS of each), and the total numbers.
    changes = models.JSONField(default=list)
    findings = models.JSONField(default=list)
    counts = models.JSONField(default=dict)
    # The reason why the run failed: {"code", "facts"}. Null if it did not fail.
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
    """The record of a line's last export.

    The line is due if its ``revision`` or ``lifecycle`` differs from this record. ``written``: the id of the
    L2VPN, the last written fields, and the interface of each end (see ``line_export``). ``error``: the reason
    why this line could not be exported: {"code", "facts"}. ``done_at``: the last successful export.
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
    """An L2VPN in NetBox that the portal did not create, with the VNI of a foreign circuit.

    The row has the values that the last run read. ``tenant`` and ``tenant_id``: the tenant's name and id; ""
    and null without a tenant.
    """

    netbox_id = models.BigIntegerField(unique=True)
    identifier = models.BigIntegerField(db_index=True)
    name = models.CharField(max_length=100)
    tenant = models.CharField(max_length=100, blank=True)
    tenant_id = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return self.name
