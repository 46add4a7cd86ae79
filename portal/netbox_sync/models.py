"""The knowledge of NetBox between two syncs: which of its objects is which of our rows, and how it went."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from portal.vll.models import Vll


class NetboxObject(models.Model):
    """One of our rows is this object of NetBox; by ids, so that a rename there is a rename here.

    ``kind`` is one of mapping.KINDS and says what ``row_id`` and ``netbox_id`` are ids of; a link goes by the
    lower id of its two interfaces. ``taken``: field -> what was taken over last, so that edits here are told
    from what NetBox said before.
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
    """One row: who is at work, when NetBox was last read and written, and why not since."""

    # Only the worker with this claim works; it lapses with a killed one.
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    # When NetBox last said by its webhook that something has changed.
    wanted_at = models.DateTimeField(null=True)
    # The beginnings of the last import that was begun, and of the last that read all of NetBox.
    tried_at = models.DateTimeField(null=True)
    imported_at = models.DateTimeField(null=True)
    # When it was last seen that every line is in NetBox as it should be.
    exported_at = models.DateTimeField(null=True)
    release = models.CharField(max_length=50, blank=True)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    # Since when it does not go, and why: {"code", "facts"}; null while it goes.
    failing_since = models.DateTimeField(null=True)
    error = models.JSONField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="there_is_one_netbox")]

    def __str__(self) -> str:
        return f"NetBox {self.release}"

    @property
    def change_waits(self) -> bool:
        """NetBox has said that something changed since the last import was begun."""
        return self.wanted_at is not None and (self.tried_at is None or self.wanted_at > self.tried_at)

    def may_be_tried(self, now: datetime) -> bool:
        """It did not fail lately, or was left alone for long enough."""
        return self.retry_at is None or self.retry_at <= now


class NetboxRun(models.Model):
    """One look at NetBox: asked for by somebody or something, and what it found and did."""

    class Why(models.TextChoices):
        SCHEDULE = "schedule"
        WEBHOOK = "webhook"
        PERSON = "person"

    why = models.CharField(max_length=10, choices=Why)
    # Who asked for it, "" where nobody did.
    asked_by = models.CharField(max_length=150, blank=True)
    asked_at = models.DateTimeField()
    dry = models.BooleanField(default=False)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # What it does at the moment, and how far it is; null: of unknown length.
    phase = models.CharField(max_length=30, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)
    # The first so many of what it found, and how many there are of each.
    changes = models.JSONField(default=list)
    findings = models.JSONField(default=list)
    counts = models.JSONField(default=dict)
    # Why it ended early: {"code", "facts"}.
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
    """A line in NetBox. It is due while ``revision`` or ``lifecycle`` is not the line's.

    ``written``: the L2VPN's id, the fields as they were written last, and each end's interface; see
    exporting. ``error``: what keeps this line, and only this one, from NetBox: {"code", "facts"}.
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
    """An L2VPN of others in NetBox whose identifier is the VNI of a found line, as of the last run.

    ``tenant``: its name and its id there, "" and null for none.
    """

    netbox_id = models.BigIntegerField(unique=True)
    identifier = models.BigIntegerField(db_index=True)
    name = models.CharField(max_length=100)
    tenant = models.CharField(max_length=100, blank=True)
    tenant_id = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return self.name
