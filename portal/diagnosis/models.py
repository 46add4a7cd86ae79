import uuid

from django.db import models
from django.db.models import Q

from portal.accounts.models import Customer
from portal.core.db.row_conditions import TenantQuerySet
from portal.vll.models import Vll


class TroubleReport(models.Model):
    """A report to the NOC about trouble with a line, with the diagnosis at that time."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    vll = models.ForeignKey(Vll, on_delete=models.PROTECT, related_name="trouble_reports", db_index=False)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="trouble_reports")
    reported_by = models.CharField(max_length=150)
    reported_at = models.DateTimeField()
    # The reporter's note, or "".
    note = models.TextField(blank=True, default="")
    # The response of ``GET /vlls/<id>/diagnosis`` for the NOC at that moment.
    finding = models.JSONField()
    closed_by = models.CharField(max_length=150, blank=True, default="")
    closed_at = models.DateTimeField(null=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["vll"], condition=Q(closed_at__isnull=True), name="a_line_has_one_open_trouble_report"
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, closed_by="")
                | Q(closed_at__isnull=False) & ~Q(closed_by=""),
                name="a_closed_trouble_report_names_who_closed_it",
            ),
        ]
        indexes = [
            models.Index(fields=["vll", "-reported_at"], name="trouble_by_line"),
        ]

    def __str__(self) -> str:
        return f"{self.vll_id} at {self.reported_at:%Y-%m-%d %H:%M:%S}"
