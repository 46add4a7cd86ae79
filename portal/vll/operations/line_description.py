"""The description of a VLL: the customer's text. Nothing depends on it.

Routers show the description and the customer's name through SNMP as the label of the line. Labels are part of
the intent, so a new label requires a new intent.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts import permissions
from portal.accounts.models import User
from portal.events.outbox import announce
from portal.vll.convergence.requests import intents_renew
from portal.vll.errors import NotAllowedToOrder
from portal.vll.models import Vll, VllEnd
from portal.vll.states import IN_SERVICE


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


def labels_changed(lines: QuerySet[Vll, Any], *, now: datetime) -> None:
    """Send new intents to the routers that show labels, because the labels of these lines have changed."""
    ends = VllEnd.objects.filter(
        vll__in=lines, vll__lifecycle__in=IN_SERVICE, port__router__observed__labels=True
    )
    if routers := set(ends.values_list("port__router_id", flat=True)):
        intents_renew(routers, now=now)
