"""The row of an order, and the search for an order that is the same."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from portal.accounts.models import Customer
from portal.core.db.statements import insert, rows_of
from portal.core.http.requests import current_request_id
from portal.vll.line_revision import content_of
from portal.vll.line_spec import ANY, END, LINE, LineSpec, Property
from portal.vll.models import Order, Vll
from portal.vll.operations.state_compare_and_swap import order_announce, order_move
from portal.vll.states import TERMINAL_LIFECYCLES, OrderAction, OrderState

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


def order_acknowledge(
    *,
    vll: Vll,
    action: str,
    revision: int,
    actor: str,
    now: datetime,
    pk: UUID | None = None,
    pending_approval: bool = False,
    data: dict[str, Any] | None = None,
    **also: Any,
) -> Order:
    """Insert the order and announce it: acknowledged, or pending approval.

    The VLL must have no other open order.
    """
    order = Order(
        pk=pk or uuid4(),
        vll=vll,
        customer_id=vll.customer_id,
        action=action,
        revision=revision,
        ordered_by=actor,
        request_id=current_request_id.get(),
        ordered_at=now,
        state_at=now,
        **also,
    )
    insert(order)
    order_announce("order.acknowledged", order, now=now, actor=actor, **(data or {}))
    if pending_approval:
        order_move(order, OrderState.PENDING_APPROVAL, now=now)
    return order
