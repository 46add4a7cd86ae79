"""Changes of a line, its suspension and its resumption."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts import permissions
from portal.accounts.models import Customer, User
from portal.core.network.encapsulations import Transport
from portal.inventory.models import Port, Router
from portal.underlay.transport_selection import SelectedTransport
from portal.vll.activation_test_rules import takes_another_way
from portal.vll.errors import (
    ChangeWhileFrozen,
    EndsSwapped,
    NotAllowedToOrder,
    NothingToChange,
    OrderIsOpen,
    StaleRevision,
    StillBeingRemoved,
    WrongLifecycle,
)
from portal.vll.line_spec import LineRevision, LineSpec, content_of
from portal.vll.models import Order, Vll, VllTombstone
from portal.vll.operations.activation_test_lifecycle import activation_test_plan
from portal.vll.operations.add_line import content_for
from portal.vll.operations.line_description import describe_locked
from portal.vll.operations.line_request_check import Accepted, check_line
from portal.vll.operations.order_record import needs_approval, order_acknowledge
from portal.vll.operations.resource_leases import Leased, cores_lease, ends_lease, transport_lease
from portal.vll.operations.revision_create import revise
from portal.vll.states import IN_SERVICE, TERMINAL_ORDER_STATES, AdminStatus, Lifecycle, OrderAction


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
    vll = vll_lock(vll, user, expected_revision=expected_revision)
    check_in_service(vll)
    before = content_of(vll)
    described = None
    if changes.get("description", vll.description) != vll.description:
        described = {"before": vll.description, "after": changes["description"]}
    order_id = uuid.uuid4()
    after, found = _content_after(user, vll, before, changes, order_id, now)
    if described is not None:
        # This locks RouterConvergence rows, which come after ports in the lock order.
        describe_locked(vll, described["after"] or "", actor=user.username, now=now)
    if after == before:
        raise NothingToChange
    pending_approval = waits_for_approval(user, vll.customer, before, after)
    return order_change(
        vll,
        before=before,
        after=after,
        actor=user.username,
        now=now,
        pk=order_id,
        pending_approval=pending_approval,
        retry_of=retry_of,
        data=_why_other_transport(before, after, found),
        described=described,
    )


def vll_lock(vll: Vll, user: User, *, expected_revision: int | None = None) -> Vll:
    """Lock and return the VLL, if the user may order and no other order is open.

    Raises NotAllowedToOrder, StaleRevision, OrderIsOpen.
    """
    vll = Vll.objects.locked().select_related("customer").get(pk=vll.pk)
    check_orderable(vll, user, expected_revision=expected_revision)
    return vll


def check_orderable(vll: Vll, user: User, *, expected_revision: int | None = None) -> None:
    """Check that this user may place an order for this line now. Raises the errors of ``vll_lock``."""
    check_may_order(user, vll)
    if expected_revision is not None and expected_revision != vll.revision:
        raise StaleRevision(expected=expected_revision, current=vll.revision)
    open_order = vll.orders.exclude(state__in=TERMINAL_ORDER_STATES).first()
    if open_order is not None:
        raise OrderIsOpen(order_id=str(open_order.pk), action=open_order.action, state=open_order.state)


def check_may_order(user: User, vll: Vll) -> None:
    """Check that this user may order for the line's customer. Raises NotAllowedToOrder."""
    if not permissions.may_order(user, vll.customer):
        raise NotAllowedToOrder(customer=vll.customer.name)


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
    if takes_another_way(before, after) and (frozen := _frozen_router(before, after)):
        raise ChangeWhileFrozen(router=frozen)
    test = activation_test_plan(before, after, _routers(after).select_related("observed"))
    revise(vll, test.first, now=now)
    test.note(vll, order, now=now)


def _routers(*contents: LineRevision) -> QuerySet[Router]:
    ports = {end.port for content in contents for end in content.ends.values()}
    return Router.objects.filter(ports__in=ports).distinct()


def _frozen_router(before: LineRevision, after: LineRevision) -> str | None:
    return _routers(before, after).exclude(frozen_since=None).values_list("name", flat=True).first()


def _content_after(
    user: User, vll: Vll, before: LineRevision, changes: Mapping[str, Any], order_id: uuid.UUID, now: datetime
) -> tuple[LineRevision, Accepted | None]:
    """Lease the missing resources; return the VLL's next content and the accepted specification."""
    spec = before.spec.changed(changes)
    if spec == before.spec:
        return before, None
    check_not_swapped(before, spec)
    accepted = check_line(
        user=user,
        spec=spec,
        now=now,
        lock=True,
        owner=vll.customer,
        line=before,
        in_service=before,
        preferred=Transport(vll.transport) if "transport" not in changes else None,
        unchanged_path=unchanged_path(before, spec),
        own=[vll.pk],
    ).accepted(spec)
    leased = leased_by(vll, before)
    check_tombstones(leased, accepted.ports)
    ends = ends_lease(
        ends=spec.ends,
        ports=accepted.ports,
        cir_bps=spec.cir_bps,
        owner=order_id,
        leased=leased,
        now=now,
    )
    tunnel = transport_lease(accepted=accepted, owner=order_id, leased=leased, now=now)
    cores_lease(accepted=accepted, owner=order_id, own=[vll.pk])
    content = content_for(accepted, ends=ends, tunnel=tunnel, admin_status=before.admin_status)
    return content, accepted


def leased_by(vll: Vll, before: LineRevision) -> Leased:
    """Return the leases of the line while its content is ``before``."""
    return Leased(owner=vll.pk, cir_bps=before.cir_bps, ends=before.ends, line=before)


def waits_for_approval(user: User, customer: Customer, before: LineSpec, after: LineSpec) -> bool:
    """Return whether the NOC must approve this change. Only more bandwidth needs approval."""
    more = after.cir_bps > before.cir_bps or after.peak_bps > before.peak_bps
    return more and needs_approval(user, customer, after.peak_bps)


def _why_other_transport(before: LineRevision, after: LineRevision, found: Accepted | None) -> dict[str, Any]:
    """Return why the line gets another transport that no user requested, for the line's history."""
    if found is None or before.allocated_transport == after.allocated_transport or not found.passed_over:
        return {}
    routers = [full.router for full in found.passed_over]
    return {
        "transport": after.allocated_transport,
        "passed_over": before.allocated_transport,
        "full_routers": routers,
    }


def unchanged_path(before: LineRevision, spec: LineSpec) -> SelectedTransport | None:
    """Return the transport that carries the line now, if the change has no new demands on the underlay.

    Otherwise return None.
    """
    same_ports = all(spec.ends[side].port == end.port for side, end in before.ends.items())
    same_size = (spec.svc_mtu, spec.carried_tags) == (before.svc_mtu, before.carried_tags)
    if same_ports and same_size and spec.transport == before.transport:
        return SelectedTransport(before.allocated_transport, before.frame, gre_key=before.gre_key is not None)
    return None


def check_in_service(vll: Vll) -> None:
    """Check that the line is in service; no other line can be changed. Raises WrongLifecycle."""
    if vll.lifecycle not in IN_SERVICE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action=OrderAction.MODIFY)


def check_not_swapped(before: LineRevision, spec: LineSpec) -> None:
    """Refuse a change that swaps the ports of the two ends. Raises EndsSwapped."""
    if before.a_end.port != before.z_end.port and (spec.a_end.port, spec.z_end.port) == (
        before.z_end.port,
        before.a_end.port,
    ):
        raise EndsSwapped


def check_tombstones(leased: Leased, ports: Mapping[str, Port]) -> None:
    """Refuse to move an end to a router that has not confirmed an earlier removal of this end.

    Raises StillBeingRemoved.
    """
    for side, port in ports.items():
        if port.pk == leased.ends[side].port:
            continue
        if VllTombstone.objects.filter(vll=leased.owner, side=side, router=port.router_id).exists():
            raise StillBeingRemoved(field=f"{side}_end.port", router=port.router.name)


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
