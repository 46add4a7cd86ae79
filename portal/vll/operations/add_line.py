"""Ordering a new VLL: check everything, lease it, write the rows, and leave the rest to the routers' jobs."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.accounts.models import User
from portal.core.compiled_insert import insert
from portal.core.postgres_pipeline import pipelined
from portal.vll.errors import SimilarOrder
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.convergence_requests import converge_routers
from portal.vll.operations.end_validation import EndRequest
from portal.vll.operations.line_request_check import Accepted, LineRequest, check_line
from portal.vll.operations.line_test_lifecycle import line_test_plan
from portal.vll.operations.order_record import needs_approval, order_acknowledge
from portal.vll.operations.pre_order_holds import hold_take
from portal.vll.operations.resource_leases import (
    LeasedTunnel,
    cores_lease,
    ends_lease,
    leases_settle,
    transport_lease,
)
from portal.vll.operations.similar_orders import PAGE_ASKS_WITHIN, similar_orders
from portal.vll.queries import with_ends
from portal.vll.revision_content import Content, EndContent
from portal.vll.states import AdminStatus, Handover, OrderAction


@transaction.atomic
def order_add(
    *,
    user: User,
    a_end: EndRequest,
    z_end: EndRequest,
    svc_mtu: int,
    cir_bps: int,
    transport: str,
    description: str,
    now: datetime,
    hold: uuid.UUID | None = None,
    retry_of: Order | None = None,
    eir_bps: int = 0,
    cbs_bytes: int | None = None,
    ebs_bytes: int | None = None,
    link_loss_forwarding: bool = False,
    refuse_similar: bool = False,
) -> Order:
    """Accept an order for a new VLL, or raise a DomainError and leave no trace.

    ``svc_mtu`` and bursts in bytes (None: ours to choose), rates in bit/s, ``transport`` ``auto`` or a
    Transport's value. In one transaction: rules, MTU of the path, leases, the VLL with its ends, the order,
    an event, outbox rows.
    The order's VLL comes as ``queries.vlls`` would give it.
    With ``refuse_similar``, an order that is equal to one of the last hour raises SimilarOrder.
    What ``hold`` reserved becomes the VLL's as far as it is asked for, and the rest is given back; at no
    moment could anybody else take it. Above the customer's limit the order is held for approval.
    """
    request = LineRequest(
        a_end=a_end,
        z_end=z_end,
        svc_mtu=svc_mtu,
        cir_bps=cir_bps,
        transport=transport,
        eir_bps=eir_bps,
        cbs_bytes=cbs_bytes,
        ebs_bytes=ebs_bytes,
        link_loss_forwarding=link_loss_forwarding,
    )
    taken = None if hold is None else hold_take(user=user, hold=hold, now=now)
    leased = taken.leased if taken else None
    reserved = [end.port for end in leased.ends.values()] if leased else []
    own = [taken.pk] if taken else []
    found = check_line(user=user, request=request, now=now, lock=True, more_ports=reserved, own=own)
    accepted = found.accepted(request)
    # The ports are locked: of two equal orders at one moment, the second sees the first.
    if refuse_similar:
        since = now - PAGE_ASKS_WITHIN
        if similar := similar_orders(customer=accepted.customer, request=request, since=since):
            raise SimilarOrder(order=str(similar[0]), count=len(similar))
    vll_id = uuid.uuid4()
    ends = ends_lease(
        ends=request.ends, ports=accepted.ports, cir_bps=cir_bps, holder=vll_id, leased=leased, now=now
    )
    tunnel = transport_lease(accepted=accepted, holder=vll_id, leased=None, now=now)
    content = content_for(accepted, ends=ends, tunnel=tunnel)
    test = line_test_plan(None, content, (port.router for port in accepted.ports.values()))
    held = needs_approval(user, accepted.customer, cir_bps + eir_bps)
    with pipelined():
        vll = vll_create(vll_id, accepted, test.first, description, now)
        order = order_acknowledge(
            vll=vll,
            action=OrderAction.ADD,
            revision=vll.revision,
            actor=user.username,
            now=now,
            held=held,
            retry_of=retry_of,
            data={"transport": vll.transport, "vni": vll.vni, "gre_key": vll.gre_key},
        )
        test.note(vll, order, now=now)
        if not held:
            converge_routers((port.router_id for port in accepted.ports.values()), now=now)
    # Last, because the routers' sums are what orders of all customers wait for.
    cores_lease(accepted=accepted, holder=vll_id, own=own)
    if taken is not None:
        leases_settle(content, holder=vll.pk, spare=taken.pk, now=now)
        taken.end(now=now, kind="hold.ordered", actor=user.username, vll_id=vll.pk)
    return order


def content_for(
    accepted: Accepted,
    *,
    ends: dict[str, EndContent],
    tunnel: LeasedTunnel,
    admin_status: str = AdminStatus.UP,
) -> Content:
    """The request and its allocations, as the content of a revision."""
    request, selected = accepted.request, accepted.selected
    family = selected.transport.family
    with_addresses = {side: replace(end, tunnel_address=tunnel.addresses[side]) for side, end in ends.items()}
    return Content(
        svc_mtu=request.svc_mtu,
        cir_bps=request.cir_bps,
        eir_bps=request.eir_bps,
        requested_cbs_bytes=request.cbs_bytes,
        requested_ebs_bytes=request.ebs_bytes,
        requested_transport=request.transport,
        link_loss_forwarding=request.link_loss_forwarding,
        encapsulation=selected.transport.encapsulation.value,
        family=None if family is None else family.value,
        vni=tunnel.vni,
        gre_key=tunnel.gre_key,
        frame=selected.frame,
        admin_status=admin_status,
        decommission_at=None,
        **with_addresses,
    )


def vll_create(
    vll_id: uuid.UUID,
    accepted: Accepted,
    content: Content,
    description: str,
    now: datetime,
    *,
    handover: str = Handover.NONE,
    of_ends: Mapping[str, dict[str, Any]] | None = None,
) -> Vll:
    """Insert a line and its ends; return the line as ``queries.vlls`` returns it.

    ``of_ends``: more columns of the ends, by side.
    """
    vll = Vll(
        id=vll_id,
        customer=accepted.customer,
        description=description,
        created_at=now,
        handover=handover,
        **content.line,
    )
    more = of_ends or {}
    ends = [
        VllEnd(vll=vll, side=side, port=accepted.ports[side], **_columns(end), **more.get(side, {}))
        for side, end in content.ends.items()
    ]
    insert(vll)
    insert(*ends)
    return with_ends(vll, ends)


def _columns(end: EndContent) -> dict[str, Any]:
    return {name: getattr(end, name) for name in EndContent.__slots__ if name != "port"}
