"""The labels of lines on routers that show them through SNMP.

Labels are part of the intent, so a new label requires a new intent.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import Customer, User
from portal.inventory.operations.customers import customer_change_without_routers
from portal.vll.models import Vll, VllEnd
from portal.vll.operations.convergence_requests import intents_renew
from portal.vll.states import IN_SERVICE


def labels_changed(lines: QuerySet[Vll, Any], *, now: datetime) -> None:
    """Send new intents to the routers that show labels, because the labels of these lines have changed."""
    ends = VllEnd.objects.filter(
        vll__in=lines, vll__lifecycle__in=IN_SERVICE, port__router__observed__labels=True
    )
    if routers := set(ends.values_list("port__router_id", flat=True)):
        intents_renew(routers, now=now)


@transaction.atomic
def customer_change(*, customer: Customer, user: User, now: datetime, **changes: Any) -> Customer:
    """Change a customer as ``customer_change_without_routers`` does, and send a new name to routers.

    Routers show the name in the labels of the customer's lines.
    """
    before = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk).name
    changed = customer_change_without_routers(customer=customer, user=user, now=now, **changes)
    if changed.name != before:
        labels_changed(Vll.objects.filter(customer=changed), now=now)
    return changed
