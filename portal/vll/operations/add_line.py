"""Order a new VLL: check the specification, lease its resources and write the rows.

Tasks then configure the routers.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.core.db.sessions import pipelined
from portal.core.db.statements import insert
from portal.vll.convergence.requests import converge_routers
from portal.vll.errors import SimilarOrder
from portal.vll.line_allocation import leases_settle
from portal.vll.line_revision import LineRevision
from portal.vll.line_spec import LineSpec
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.activation_test_lifecycle import activation_test_plan
from portal.vll.operations.order_record import (
    CONFIRM_WITHIN,
    order_acknowledge,
    similar_orders,
)
from portal.vll.operations.reservations import reservation_end
from portal.vll.queries import with_ends
from portal.vll.quote import Quote, quote
from portal.vll.states import Handover, OrderAction


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
    its ends, the order, and an event. The VLL of the returned order has the same related objects loaded as a
    row of ``queries.vlls``.

    With ``refuse_similar``, an order that equals another order of the last hour raises SimilarOrder.

    The VLL takes over the leases of ``reservation`` that it needs, and the portal releases the other leases
    of the reservation. No other order can take a lease before the VLL does. An order above the customer's
    limit waits for approval.
    """
    quoted = quote(spec, user=user, now=now, lock=True, reservation=reservation)
    # The ports are locked. If two equal orders arrive together, the second one finds the first.
    if refuse_similar:
        since = now - CONFIRM_WITHIN
        if similar := similar_orders(customer=quoted.owner, spec=spec, since=since):
            raise SimilarOrder(order=str(similar[0]), count=len(similar))
    vll_id = uuid.uuid4()
    content = quoted.lease(vll_id)
    test = activation_test_plan(None, content, (port.router for port in quoted.ports.values()))
    pending_approval = quoted.needs_approval
    with pipelined():
        vll = vll_create(vll_id, quoted, test.first, now)
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
            converge_routers(port.router_id for port in quoted.ports.values())
    # Lease the cores last, because orders of all customers wait for the locks on the routers' sums.
    quoted.cores_lease(vll_id)
    if quoted.reservation is not None:
        leases_settle(content, owner=vll.pk, spare=quoted.reservation.pk, now=now)
        reservation_end(quoted.reservation, now=now, kind="hold.ordered", actor=user.username, vll_id=vll.pk)
    return order


def vll_create(
    vll_id: uuid.UUID,
    quoted: Quote,
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
        customer=quoted.owner,
        description=content.description,
        created_at=now,
        handover=handover,
        **content.columns,
    )
    more = of_ends or {}
    ends = [
        VllEnd(vll=vll, side=side, port=quoted.ports[side], **end.columns, **more.get(side, {}))
        for side, end in content.ends.items()
    ]
    insert(vll)
    insert(*ends)
    return with_ends(vll, ends)
