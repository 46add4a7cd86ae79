import uuid

from django.db import models
from django.db.models import F, Q

from portal.accounts.models import Customer
from portal.core.db.tenant_scope import TenantQuerySet

MAX_RENEWALS = 3
MAX_RESERVATIONS = 5


class Hold(models.Model):
    """A reservation of VLANs and bandwidth on two ports before an order (900 s, as in OSCARS).

    The leases carry this row's id as their owner. The row is deleted when the reservation ends.
    The class keeps its old name, because the names of the audit trail's table and triggers follow from it.
    Other modules call it ``Reservation``.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    customer = models.ForeignKey(
        Customer, on_delete=models.PROTECT, related_name="reservations", db_index=False
    )
    # The number of this reservation, unique among the customer's reservations. It is at most
    # MAX_RESERVATIONS, which limits the number of reservations.
    slot = models.PositiveSmallIntegerField()
    reserved_by = models.CharField(db_column="held_by", max_length=150)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    renewals = models.PositiveSmallIntegerField(default=0)
    cir_bps = models.BigIntegerField()
    # The leased content by side: portal.vll.line_spec.AllocatedEnd as JSON.
    ends = models.JSONField()

    objects = TenantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["customer", "slot"], name="a_hold_has_its_own_slot"),
            models.CheckConstraint(
                condition=Q(slot__range=(1, MAX_RESERVATIONS)), name="a_customer_has_five_holds"
            ),
            models.CheckConstraint(
                condition=Q(renewals__lte=MAX_RENEWALS), name="a_hold_is_renewed_three_times"
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="a_hold_ends_after_it_begins"
            ),
            models.CheckConstraint(condition=Q(cir_bps__gt=0), name="a_hold_books_something"),
        ]

    def __str__(self) -> str:
        return f"reservation {self.id} until {self.expires_at:%H:%M:%S}"


Reservation = Hold
