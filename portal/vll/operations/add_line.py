"""Order a new VLL: check the specification, lease its resources and write the rows.

Tasks then configure the routers.
"""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.core.db.compiled_insert import insert
from portal.core.db.postgres_pipeline import pipelined
from portal.vll.convergence.requests import converge_routers
from portal.vll.errors import SimilarOrder
from portal.vll.line_spec import LINE, AllocatedEnd, LineRevision, LineSpec
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.activation_test_lifecycle import activation_test_plan
from portal.vll.operations.line_request_check import Accepted, check_line
from portal.vll.operations.order_record import (
    CONFIRM_WITHIN,
    needs_approval,
    order_acknowledge,
    similar_orders,
)
from portal.vll.operations.reservations import reservation_take
from portal.vll.operations.resource_leases import (
    LeasedTunnel,
    cores_lease,
    ends_lease,
    leases_settle,
    transport_lease,
)
from portal.vll.queries import with_ends
from portal.vll.states import AdminStatus, Handover, OrderAction


@transaction.atomic
def order_add(
    *,
    user: User,
    spec: LineSpec,
    now: datetime,
    reservation: uuid.UUID | None = None,
    retry_of: Order | None = None,
    refuse_similar: bool = False,
) -> Order:
    """Accept an order for a new VLL. Raises a DomainError, and changes nothing, if a rule forbids the order.

    One transaction checks the rules and the MTU of the path, leases the resources, and writes the VLL with
    its ends, the order, an event and outbox rows. The VLL of the returned order has the same related objects
    loaded as a row of ``queries.vlls``.

    With ``refuse_similar``, an order that equals another order of the last hour raises SimilarOrder.

    The VLL takes over the leases of ``reservation`` that it needs, and the portal releases the other leases
    of the reservation. No other order can take a lease before the VLL does. An order above the customer's
    limit waits for approval.
    """
    taken = None if reservation is None else reservation_take(user=user, reservation=reservation, now=now)
    leased = taken.leased if taken else None
    reserved = [end.port for end in leased.ends.values()] if leased else []
    own = [taken.pk] if taken else []
    found = check_line(user=user, spec=spec, now=now, lock=True, more_ports=reserved, own=own)
    accepted = found.accepted(spec)
    # The ports are locked. If two equal orders arrive together, the second one finds the first.
    if refuse_similar:
        since = now - CONFIRM_WITHIN
        if similar := similar_orders(customer=accepted.customer, spec=spec, since=since):
            raise SimilarOrder(order=str(similar[0]), count=len(similar))
    vll_id = uuid.uuid4()
    ends = ends_lease(
        ends=spec.ends, ports=accepted.ports, cir_bps=spec.cir_bps, owner=vll_id, leased=leased, now=now
    )
    tunnel = transport_lease(accepted=accepted, owner=vll_id, leased=None, now=now)
    content = content_for(accepted, ends=ends, tunnel=tunnel)
    test = activation_test_plan(None, content, (port.router for port in accepted.ports.values()))
    pending_approval = needs_approval(user, accepted.customer, spec.peak_bps)
    with pipelined():
        vll = vll_create(vll_id, accepted, test.first, now)
        order = order_acknowledge(
            vll=vll,
            action=OrderAction.ADD,
            revision=vll.revision,
            actor=user.username,
            now=now,
            pending_approval=pending_approval,
            retry_of=retry_of,
            data={"transport": vll.transport, "vni": vll.vni, "gre_key": vll.gre_key},
        )
        test.note(vll, order, now=now)
        if not pending_approval:
            converge_routers((port.router_id for port in accepted.ports.values()), now=now)
    # Lease the cores last, because orders of all customers wait for the locks on the routers' sums.
    cores_lease(accepted=accepted, owner=vll_id, own=own)
    if taken is not None:
        leases_settle(content, owner=vll.pk, spare=taken.pk, now=now)
        taken.end(now=now, kind="hold.ordered", actor=user.username, vll_id=vll.pk)
    return order


def content_for(
    accepted: Accepted,
    *,
    ends: dict[str, AllocatedEnd],
    tunnel: LeasedTunnel,
    admin_status: str = AdminStatus.UP,
) -> LineRevision:
    """Return the request and its allocations as the content of a revision."""
    spec, selected = accepted.spec, accepted.selected
    family = selected.transport.family
    a_end, z_end = (replace(ends[side], tunnel_address=tunnel.addresses[side]) for side in "az")
    return LineRevision(
        **{each.name: getattr(spec, each.name) for each in LINE},
        encapsulation=selected.transport.encapsulation.value,
        family=None if family is None else family.value,
        vni=tunnel.vni,
        gre_key=tunnel.gre_key,
        frame=selected.frame,
        admin_status=admin_status,
        decommission_at=None,
        a_end=a_end,
        z_end=z_end,
    )


def vll_create(
    vll_id: uuid.UUID,
    accepted: Accepted,
    content: LineRevision,
    now: datetime,
    *,
    handover: str = Handover.NONE,
    of_ends: Mapping[str, dict[str, Any]] | None = None,
) -> Vll:
    """Insert a line and its ends. Return the line with the same related objects loaded as a row of
    ``queries.vlls``.

    ``of_ends``: additional columns of the ends, by side.
    """
    vll = Vll(
        id=vll_id,
        customer=accepted.customer,
        description=content.description,
        created_at=now,
        handover=handover,
        **content.columns,
    )
    more = of_ends or {}
    ends = [
        VllEnd(vll=vll, side=side, port=accepted.ports[side], **end.columns, **more.get(side, {}))
        for side, end in content.ends.items()
    ]
    insert(vll)
    insert(*ends)
    return with_ends(vll, ends)
