"""Order a new VLL: find an equal order, check the specification, lease resources and write the rows.

Tasks then configure the routers.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction

from portal.accounts.models import Customer, User
from portal.core.db.sessions import pipelined
from portal.core.db.statements import insert, rows_of
from portal.vll.convergence.requests import converge_routers
from portal.vll.errors import SimilarOrder
from portal.vll.line_allocation import leases_settle
from portal.vll.line_revision import LineRevision, content_of
from portal.vll.line_spec import ANY, END, LINE, LineSpec, Property
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.activation_test_lifecycle import activation_test_plan
from portal.vll.operations.reservations import reservation_end
from portal.vll.operations.state_compare_and_swap import order_acknowledge
from portal.vll.queries import with_ends
from portal.vll.quote import Quote, quote
from portal.vll.states import TERMINAL_LIFECYCLES, Handover, OrderAction

# A client repeats a request within seconds.
REPEATED_WITHIN = timedelta(minutes=1)
# A user who goes back in the browser still finds the submitted form.
CONFIRM_WITHIN = timedelta(hours=1)
# The number of a customer's newest lines that are compared. It limits the cost during a burst of orders.
_COMPARED = 100
_SHOWN = 10


def _equal(table: str, each: Property, prefix: str = "") -> str:
    """Return the SQL condition that the property of a line or end has the requested value."""
    column = "port_id" if each.column == "port" else each.column
    operator = "IS NOT DISTINCT FROM" if each.default is None else "="
    return f"{table}.{column} {operator} %({prefix}{each.name})s"


def _joined(side: str) -> str:
    conditions = " AND ".join(_equal(side, each, f"{side}_") for each in END)
    return f"JOIN vll_vllend {side} ON {side}.vll_id = line.id AND {side}.side = '{side}' AND {conditions}"


_LINE = tuple(each for each in LINE if each.name != "description")
_SIMILAR = f"""
SELECT placed.id FROM (
    SELECT * FROM vll_vll WHERE customer_id = %(customer)s AND created_at > %(since)s
    ORDER BY created_at DESC, id DESC LIMIT {_COMPARED}
) line
{_joined("a")}
{_joined("z")}
JOIN vll_order placed ON placed.vll_id = line.id AND placed.action = '{OrderAction.ADD.value}'
WHERE line.id <> ALL(%(besides)s) AND line.lifecycle <> ALL(%(over)s)
    AND {" AND ".join(_equal("line", each) for each in _LINE)}
ORDER BY line.created_at DESC, line.id DESC LIMIT {_SHOWN}
"""  # noqa: S608 - only constants of this module and of portal.vll.line_spec


def similar_orders_of(vll: Vll, *, now: datetime) -> list[UUID]:
    """Return the ids of the orders of the last minute that are equal to the order that created this line.

    An end with a named VLAN, or with a whole port, excludes other lines with the same frames. Only a line
    whose VLANs the portal chooses at both ends can have an equal order. For other lines, no query is needed.
    """
    spec = content_of(vll).spec
    if any(end.outer_vlan != ANY for end in spec.ends.values()):
        return []
    since = now - REPEATED_WITHIN
    return similar_orders(customer=vll.customer, spec=spec, since=since, besides=[vll.pk])


def similar_orders(
    *, customer: Customer, spec: LineSpec, since: datetime, besides: Collection[UUID] = ()
) -> list[UUID]:
    """Return the ids of the customer's equal orders after ``since``, newest first, at most 10.

    Descriptions may differ, because pages propose a new one for each order. Lines that have ended and the
    lines ``besides`` do not count.
    """
    values: dict[str, Any] = {
        "customer": customer.pk,
        "since": since,
        "besides": list(besides),
        "over": sorted(TERMINAL_LIFECYCLES),
        **{each.name: getattr(spec, each.name) for each in _LINE},
    }
    for side, end in spec.ends.items():
        values |= {f"{side}_{each.name}": getattr(end, each.name) for each in END}
        values |= {f"{side}_tagging": end.tagging.value, f"{side}_outer_vlan": end.requested_outer_vlan}
    return [row[0] for row in rows_of(_SIMILAR, values)]


@transaction.atomic
def order_add(
    *,
    user: User,
    spec: LineSpec,
    now: datetime,
    reservation: UUID | None = None,
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
    vll_id = uuid4()
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
    vll_id: UUID,
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
