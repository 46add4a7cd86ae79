"""Changes of a line: its values, its suspension and resumption, and its description.

Nothing depends on the description, the customer's text. Routers show it, and the customer's name, through
SNMP as the label of the line. Labels are part of the intent, so a new label requires a new intent.
"""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.models import User
from portal.events.announcements import announce
from portal.vll.convergence.requests import intents_renew
from portal.vll.errors import ChangeWhileFrozen, NothingToChange, WrongLifecycle
from portal.vll.line_revision import LineRevision, content_of, takes_another_way
from portal.vll.line_rules import check_may_order, check_orderable
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.activation_test_lifecycle import activation_test_plan
from portal.vll.operations.revision_create import revise
from portal.vll.operations.state_compare_and_swap import order_acknowledge
from portal.vll.queries import routers_of
from portal.vll.quote import Quote, quote_change
from portal.vll.states import IN_SERVICE, AdminStatus, Lifecycle, OrderAction


@transaction.atomic
def order_modify(
    *,
    user: User,
    vll: Vll,
    changes: Mapping[str, Any],
    now: datetime,
    expected_revision: int | None = None,
    retry_of: Order | None = None,
) -> Order:
    """Order a change of ``vll``. Its present values stay leased until both ends have verified the new ones.

    ``changes``: the members of LineSpec that change, as for ``LineSpec.changed``.
    A new description counts immediately, because routers only use it as a label. Raises NotAllowedToOrder,
    StaleRevision, OrderIsOpen, WrongLifecycle, NothingToChange, EndsSwapped, StillBeingRemoved,
    ChangeWhileFrozen, and all refusals of a new order.
    """
    vll = _locked(vll)
    before = content_of(vll)
    quoted = quote_change(vll, changes, user=user, now=now, lock=True, expected_revision=expected_revision)
    if quoted.changes_nothing:
        raise NothingToChange
    order_id = uuid.uuid4()
    after = quoted.lease(order_id)
    quoted.cores_lease(order_id)
    described = None
    if changes.get("description", vll.description) != vll.description:
        described = {"before": vll.description, "after": changes["description"]}
        # This locks RouterConvergence rows, which come after ports in the lock order.
        describe_locked(vll, described["after"] or "", actor=user.username, now=now)
    return order_change(
        vll,
        before=before,
        after=after,
        actor=user.username,
        now=now,
        pk=order_id,
        pending_approval=quoted.needs_approval,
        retry_of=retry_of,
        data=_why_other_transport(before, after, quoted),
        described=described,
    )


def vll_lock(vll: Vll, user: User) -> Vll:
    """Lock and return the VLL, if the user may order and no other order is open.

    Raises NotAllowedToOrder, OrderIsOpen.
    """
    vll = _locked(vll)
    check_orderable(vll, user)
    return vll


def _locked(vll: Vll) -> Vll:
    locked: Vll = Vll.objects.locked().select_related("customer").get(pk=vll.pk)
    return locked


def order_change(
    vll: Vll,
    *,
    before: LineRevision,
    after: LineRevision,
    actor: str,
    now: datetime,
    pk: uuid.UUID | None = None,
    pending_approval: bool = False,
    retry_of: Order | None = None,
    data: dict[str, Any] | None = None,
    described: dict[str, str] | None = None,
) -> Order:
    """Insert the order that turns ``before`` into ``after``.

    The caller has locked the VLL and leased what ``after`` needs. ``data``: additional data of the order's
    event. ``described``: the description before and after, if it changed.
    """
    order = order_acknowledge(
        vll=vll,
        action=OrderAction.MODIFY,
        revision=vll.revision + 1,
        actor=actor,
        now=now,
        pk=pk,
        pending_approval=pending_approval,
        before=before.as_json(),
        after=after.as_json(),
        retry_of=retry_of,
        data=data,
        described=described,
    )
    if not pending_approval:
        order_carry_out(order, vll, after, now=now)
    return order


def order_carry_out(order: Order, vll: Vll, after: LineRevision, *, now: datetime) -> None:
    """Make the routers build the content of a modify order. A line on a new path is tested first.

    Raises ChangeWhileFrozen if a router is frozen and the line needs another tunnel.
    """
    before = content_of(vll)
    frozen = routers_of(before, after).exclude(frozen_since=None)
    if takes_another_way(before, after) and (router := frozen.first()):
        raise ChangeWhileFrozen(router=router.name)
    test = activation_test_plan(before, after, routers_of(after).select_related("observed"))
    revise(vll, test.first, now=now)
    test.note(vll, order, now=now)


def _why_other_transport(before: LineRevision, after: LineRevision, quoted: Quote) -> dict[str, Any]:
    """Return why the line gets another transport that no user requested, for the line's history."""
    if before.allocated_transport == after.allocated_transport or not quoted.passed_over:
        return {}
    routers = [full.router for full in quoted.passed_over]
    return {
        "transport": after.allocated_transport,
        "passed_over": before.allocated_transport,
        "full_routers": routers,
    }


@transaction.atomic
def order_suspend(*, user: User, vll: Vll, now: datetime, retry_of: Order | None = None) -> Order:
    """Stop an active line. Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle."""
    vll = vll_lock(vll, user)
    if vll.lifecycle != Lifecycle.ACTIVE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action="suspend")
    return _order_admin(vll, AdminStatus.DOWN, actor=user.username, now=now, retry_of=retry_of)


@transaction.atomic
def order_resume(*, user: User, vll: Vll, now: datetime, retry_of: Order | None = None) -> Order:
    """Let a suspended line forward again. Raises NotAllowedToOrder, OrderIsOpen, WrongLifecycle."""
    vll = vll_lock(vll, user)
    if vll.lifecycle != Lifecycle.SUSPENDED:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action="resume")
    return _order_admin(vll, AdminStatus.UP, actor=user.username, now=now, retry_of=retry_of)


def _order_admin(vll: Vll, status: str, *, actor: str, now: datetime, retry_of: Order | None) -> Order:
    before = content_of(vll)
    after = replace(before, admin_status=status)
    return order_change(vll, before=before, after=after, actor=actor, now=now, retry_of=retry_of)


@transaction.atomic
def vll_describe(*, user: User, vll: Vll, description: str, now: datetime) -> Vll:
    """Change the description of ``vll`` immediately, in any life cycle state. Raises NotAllowedToOrder."""
    vll = Vll.objects.locked().select_related("customer").get(pk=vll.pk)
    check_may_order(user, vll.customer)
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
    labels_changed(Vll.objects.filter(pk=vll.pk))
    announce(
        "vll.described",
        now=now,
        customer_id=vll.customer_id,
        vll_id=vll.pk,
        actor=actor,
        data={"before": before, "after": description},
    )


def labels_changed(lines: QuerySet[Vll, Any]) -> None:
    """Send new intents to the routers that show labels, because the labels of these lines have changed."""
    ends = VllEnd.objects.filter(
        vll__in=lines, vll__lifecycle__in=IN_SERVICE, port__router__observed__labels=True
    )
    if routers := set(ends.values_list("port__router_id", flat=True)):
        intents_renew(routers)
