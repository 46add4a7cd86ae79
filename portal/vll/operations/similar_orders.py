"""Find recent orders that equal an order for a new line. Such an order is probably a repetition."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from portal.accounts.models import Customer
from portal.vll.models import Vll
from portal.vll.operations.line_request_check import LineRequest, request_of
from portal.vll.revision_content import content_of
from portal.vll.states import TERMINAL_LIFECYCLES, OrderAction

# A client repeats a request within seconds.
REPEATED_WITHIN = timedelta(minutes=1)
# A user who goes back in the browser still finds the submitted form.
CONFIRM_WITHIN = timedelta(hours=1)
# The number of a customer's newest lines that are compared. It limits the cost during a burst of orders.
_COMPARED = 100
_SHOWN = 10

_END = """
JOIN vll_vllend {side} ON {side}.vll_id = line.id AND {side}.side = '{side}'
    AND {side}.port_id = %({side}_port)s AND {side}.tagging = %({side}_tagging)s
    AND {side}.requested_outer_vlan IS NOT DISTINCT FROM %({side}_outer)s
    AND {side}.inner_vlan IS NOT DISTINCT FROM %({side}_inner)s
    AND {side}.exact_match = %({side}_exact_match)s
"""
_SIMILAR = f"""
SELECT placed.id FROM (
    SELECT * FROM vll_vll WHERE customer_id = %(customer)s AND created_at > %(since)s
    ORDER BY created_at DESC, id DESC LIMIT {_COMPARED}
) line
{_END.format(side="a")}
{_END.format(side="z")}
JOIN vll_order placed ON placed.vll_id = line.id AND placed.action = '{OrderAction.ADD.value}'
WHERE line.id <> ALL(%(besides)s) AND line.lifecycle <> ALL(%(over)s)
    AND line.svc_mtu = %(svc_mtu)s AND line.cir_bps = %(cir_bps)s AND line.eir_bps = %(eir_bps)s
    AND line.requested_cbs_bytes IS NOT DISTINCT FROM %(cbs_bytes)s
    AND line.requested_ebs_bytes IS NOT DISTINCT FROM %(ebs_bytes)s
    AND line.requested_transport = %(transport)s
    AND line.link_loss_forwarding = %(link_loss_forwarding)s
ORDER BY line.created_at DESC, line.id DESC LIMIT {_SHOWN}
"""  # noqa: S608 - only constants of this module


def similar_orders_of(vll: Vll, *, now: datetime) -> list[UUID]:
    """Return the ids of the orders of the last minute that are equal to the order that created this line.

    An end with a named VLAN, or with a whole port, excludes other lines with the same frames. Only a line
    whose VLANs the portal chooses at both ends can have an equal order. For other lines, no query is needed.
    """
    request = request_of(content_of(vll))
    if any(end.outer_vlan != "any" for end in request.ends.values()):
        return []
    since = now - REPEATED_WITHIN
    return similar_orders(customer=vll.customer, request=request, since=since, besides=[vll.pk])


def similar_orders(
    *, customer: Customer, request: LineRequest, since: datetime, besides: Collection[UUID] = ()
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
        "svc_mtu": request.svc_mtu,
        "cir_bps": request.cir_bps,
        "eir_bps": request.eir_bps,
        "cbs_bytes": request.cbs_bytes,
        "ebs_bytes": request.ebs_bytes,
        "transport": request.transport,
        "link_loss_forwarding": request.link_loss_forwarding,
    }
    for side, end in request.ends.items():
        values |= {
            f"{side}_port": end.port,
            f"{side}_tagging": end.tagging.value,
            f"{side}_outer": end.requested_outer_vlan,
            f"{side}_inner": end.inner_vlan,
            f"{side}_exact_match": end.exact_match,
        }
    with connection.cursor() as cursor:
        cursor.execute(_SIMILAR, values)
        return [row[0] for row in cursor.fetchall()]
