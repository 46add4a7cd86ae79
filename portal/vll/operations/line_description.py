"""The description of a VLL: the customer's text. Routers show the description through SNMP. Nothing depends
on it.
"""

from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.events.outbox import announce
from portal.vll.errors import NotAllowedToOrder
from portal.vll.models import Vll
from portal.vll.operations.line_labels import labels_changed


@transaction.atomic
def vll_describe(*, user: User, vll: Vll, description: str, now: datetime) -> Vll:
    """Change the description of ``vll`` immediately, in any life cycle state. Raises NotAllowedToOrder."""
    vll = Vll.objects.locked().select_related("customer").get(pk=vll.pk)
    if not permissions.may_order(user, vll.customer):
        raise NotAllowedToOrder(customer=vll.customer.name)
    describe_locked(vll, description, actor=user.username, now=now)
    return vll


def describe_locked(vll: Vll, description: str, *, actor: str, now: datetime) -> None:
    """Change the description as ``vll_describe`` does.

    The caller has locked the VLL and checked the permission.
    """
    if description == vll.description:
        return
    before = vll.description
    Vll.objects.filter(pk=vll.pk).update(description=description)
    vll.description = description
    labels_changed(Vll.objects.filter(pk=vll.pk), now=now)
    announce(
        "vll.described",
        now=now,
        customer_id=vll.customer_id,
        vll_id=vll.pk,
        actor=actor,
        data={"before": before, "after": description},
    )
