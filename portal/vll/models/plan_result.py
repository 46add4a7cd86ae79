import uuid

from django.db import models

from portal.vll.models.order import Order


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
