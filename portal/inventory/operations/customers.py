"""Operations of the NOC on customers. ``portal.vll.guarded_inventory_deletion`` removes them."""

from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import Customer, User
from portal.inventory.errors import Retired, ValueTaken
from portal.inventory.operations.row_writes import Refusals, row_change, row_create


def customer_create(*, name: str, user: User, now: datetime, **facts: Any) -> Customer:
    """Create a customer. Raises ValueTaken, OutOfRange.

    ``facts``: approve_up_to_bps (bit/s; None: no order needs approval), cooling_off_s.
    """
    customer = Customer(name=name, created_at=now, **facts)
    return row_create(customer, kind="customer", refusals=_refusals(name), user=user, now=now)


@transaction.atomic
def customer_change_without_routers(
    *, customer: Customer, user: User, now: datetime, **changes: Any
) -> Customer:
    """Change a customer. Raises ValueTaken, OutOfRange, Retired.

    ``changes``: name, approve_up_to_bps, cooling_off_s. This function sends no new name to routers.
    ``portal.vll.operations.customer_change`` does.
    """
    locked = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
    if locked.retired_at is not None:
        raise Retired(what="customer", name=locked.name)
    refusals = _refusals(changes.get("name", locked.name))
    return row_change(locked, changes, kind="customer", refusals=refusals, user=user, now=now)


def _refusals(name: str) -> Refusals:
    return {"accounts_customer_name_key": lambda: ValueTaken(what="customer", value=name, field="name")}
