import uuid

from django.db import models
from django.db.models import F, Q

from portal.accounts.models import Customer
from portal.core.db.row_conditions import TenantQuerySet
from portal.vll.models.vll import Vll
from portal.vll.states import CALLED_OFF, IN_SERVICE_ACTIONS, TERMINAL_ORDER_STATES, OrderAction, OrderState


class Order(models.Model):
    """A request to change a VLL, and its progress. Terminal states never change."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    vll = models.ForeignKey(Vll, on_delete=models.PROTECT, related_name="orders")
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="orders", db_index=False)
    action = models.CharField(max_length=10, choices=OrderAction)
    state = models.CharField(max_length=20, choices=OrderState, default=OrderState.ACKNOWLEDGED)
    # The order is complete when the routers have confirmed this revision of the VLL.
    revision = models.PositiveIntegerField()
    ordered_by = models.CharField(max_length=150)
    # The id of the HTTP request that created the order; "" if no request did.
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    ordered_at = models.DateTimeField()
    state_at = models.DateTimeField()
    # Why the order failed or is failing: {"code", "message", "side", "router", ...}; null without a failure.
    failure = models.JSONField(null=True)
    # Set if a NOC admin ended the order without confirmation from the routers: {"by", "reason", "at"}. The
    # order's leases are released when the routers have confirmed the line.
    forced = models.JSONField(null=True)
    # When the NOC approved the order.
    approved_at = models.DateTimeField(null=True)
    # When the portal raised the alarm that this order takes too long.
    alarmed_at = models.DateTimeField(null=True)
    # Only for a modify or a test: the content before and after, as JSON of
    # portal.vll.line_revision.LineRevision. For a test, ``before`` and ``after`` are equal.
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    # Only for a modify that also changes the description: {"before", "after"}. The change counts immediately
    # and is never undone.
    described = models.JSONField(null=True)
    retry_of = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="retries")

    objects = TenantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=OrderState.values), name="order_state_is_a_known_state"
            ),
            models.CheckConstraint(
                condition=Q(action__in=OrderAction.values), name="order_action_is_a_known_action"
            ),
            models.UniqueConstraint(
                fields=["vll"],
                condition=~Q(state__in=sorted(TERMINAL_ORDER_STATES)),
                name="a_vll_has_one_open_order",
            ),
            models.CheckConstraint(
                condition=~Q(action__in=sorted(IN_SERVICE_ACTIONS))
                | Q(before__isnull=False, after__isnull=False),
                name="an_order_in_service_knows_the_way_back",
            ),
            models.UniqueConstraint(
                fields=["retry_of"],
                condition=~Q(state__in=sorted(CALLED_OFF)),
                name="an_order_is_retried_once",
            ),
            models.CheckConstraint(
                condition=Q(forced__isnull=True) | Q(state__in=[OrderState.FAILED, OrderState.CANCELLED]),
                name="only_an_order_that_ended_ill_was_forced",
            ),
        ]
        indexes = [
            models.Index(fields=["customer", "-ordered_at", "-id"], name="order_by_customer"),
            models.Index(fields=["-ordered_at", "-id"], name="order_by_age"),
            models.Index(fields=["vll"], condition=Q(state=OrderState.PENDING_APPROVAL), name="order_held"),
            models.Index(fields=["state_at"], condition=Q(state=OrderState.FAILED), name="order_failed"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.vll_id}: {self.state}"

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL_ORDER_STATES


class PlanResult(models.Model):
    """The plan for an order pending approval: the changes that its routers would make after the approval.

    The NOC requests it. In a finished plan, ``routers`` has for each router its ``router`` (id), ``name``,
    ``generation`` (at the time of the query), ``differences``, ``operations``, ``ends`` and ``error``
    (provisioning.plan_preview).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="plans", db_index=False)
    requested_by = models.CharField(max_length=150, db_column="asked_by")
    requested_at = models.DateTimeField(db_column="asked_at")
    finished_at = models.DateTimeField(null=True)
    routers = models.JSONField(default=list)
    # Why the order cannot be approved as it is: {"code", "message"}; null if it can be approved.
    refusal = models.JSONField(null=True)

    class Meta:
        indexes = [models.Index(fields=["order", "-requested_at"], name="plan_by_order")]

    def __str__(self) -> str:
        return f"plan of order {self.order_id}, requested {self.requested_at:%Y-%m-%d %H:%M:%S}"


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
    # The leased content by side: portal.vll.line_revision.AllocatedEnd as JSON.
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
