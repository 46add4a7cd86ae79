"""Adopting a line that others made, as it is, and letting one go the same way (ADR 43)."""

import uuid
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from portal.accounts import permissions
from portal.accounts.models import User
from portal.allocation.gre_key_leases import gre_key_lease_named
from portal.allocation.gre_pair_leases import gre_pair_lease_named
from portal.allocation.vni_leases import vni_lease_named
from portal.core.encapsulations import Transport
from portal.inventory.found_line_sentences import odd_sentence
from portal.inventory.found_lines import FoundEnd, found_circuits, found_lines
from portal.inventory.models import ObservedRouter, Port
from portal.vll.errors import (
    FoundLineOdd,
    FoundLineUnknown,
    FoundPortUnknown,
    NotAllowedToOrder,
    RouterAdoptsNothing,
    RouterLetsNothingGo,
    WrongLifecycle,
)
from portal.vll.models import Order, Vll
from portal.vll.operations.add_line import content_for, vll_create
from portal.vll.operations.convergence_requests import converge_routers, converge_routers_of
from portal.vll.operations.end_validation import EndRequest
from portal.vll.operations.feasibility_rules import LineRequest, check_line
from portal.vll.operations.modify_line import vll_lock
from portal.vll.operations.oper_status import FRESH
from portal.vll.operations.order_record import order_acknowledge
from portal.vll.operations.removal_steps import removal_values
from portal.vll.operations.resource_leases import LeasedTunnel, cores_lease, ends_lease
from portal.vll.operations.state_transitions import lifecycle_move
from portal.vll.states import IN_SERVICE, Handover, Lifecycle, OrderAction


@transaction.atomic
def line_adopt(
    *, user: User, found_line: int, description: str, svc_mtu: int, cir_bps: int, now: datetime
) -> Order:
    """Order that both routers take over a found line, or raise a DomainError and leave no trace.

    ``found_line``: its id; ``svc_mtu`` in bytes, ``cir_bps`` in bit/s. The line is that of the customer of
    its ports. It keeps its VLANs, its key and its addresses, which are leased like any others. Nothing of it
    changes on the routers but tags, and where that cannot be done it is let go as it was; the bandwidth is
    enforced once both have it.
    """
    found = next(found_lines(found_circuits().filter(pk=found_line)), None)
    if found is None:
        raise FoundLineUnknown
    if found.hindrances:
        raise FoundLineOdd(odd=" ".join(odd_sentence(each) for each in found.hindrances))
    assert found.a and found.z  # noqa: S101, PT018 - or something would be odd
    assert found.transport is not None  # noqa: S101 - as above
    ends = {"a": found.a, "z": found.z}
    _require_adopting(ends, now)
    request = LineRequest(
        a_end=_asked(found.a),
        z_end=_asked(found.z),
        svc_mtu=svc_mtu,
        cir_bps=cir_bps,
        transport=found.transport.value,
    )
    accepted = check_line(user=user, request=request, now=now, lock=True).accepted(request)
    holder = uuid.uuid4()
    leased = ends_lease(
        ends=request.ends, ports=accepted.ports, cir_bps=cir_bps, holder=holder, leased=None, now=now
    )
    tunnel = _tunnel_lease(found.transport, found.key, ends, holder=holder, now=now)
    content = content_for(accepted, ends=leased, tunnel=tunnel)
    tags = {
        side: {"access_tag_before": end.tag, "tunnel_tag_before": end.tunnel_tag or ""}
        for side, end in ends.items()
    }
    vll = vll_create(holder, accepted, content, description, now, handover=Handover.ADOPT, of_ends=tags)
    order = order_acknowledge(
        vll=vll,
        action=OrderAction.ADD,
        revision=vll.revision,
        actor=user.username,
        now=now,
        data={"transport": vll.transport, "vni": vll.vni, "gre_key": vll.gre_key, "adopted": True},
    )
    converge_routers((port.router_id for port in accepted.ports.values()), now=now)
    cores_lease(accepted=accepted, holder=holder, own=[])
    return order


@transaction.atomic
def line_let_go(*, user: User, vll: Vll, now: datetime) -> Order:
    """Order that both routers let the line go: it forwards on, with the tags that it had, and the portal
    forgets it.

    It cannot be called off: what a router has let go of is somebody else's. Raises NotAllowedToOrder,
    OrderIsOpen, WrongLifecycle, RouterLetsNothingGo.
    """
    if not permissions.may_let_go(user, vll.customer):
        raise NotAllowedToOrder(customer=vll.customer.name)
    vll = vll_lock(vll, user)
    if vll.lifecycle not in IN_SERVICE:
        raise WrongLifecycle(lifecycle=vll.lifecycle, action="let go")
    for end in vll.ends.select_related("port__router__observed"):
        if not getattr(getattr(end.port.router, "observed", None), "adoption", ""):
            raise RouterLetsNothingGo(router=end.port.router.name)
    goes = removal_values(vll) | {"handover": Handover.RELEASE}
    lifecycle_move(vll, Lifecycle.PENDING_TERMINATE, now=now, actor=user.username, **goes)
    order = order_acknowledge(
        vll=vll, action=OrderAction.DELETE, revision=vll.revision, actor=user.username, now=now
    )
    converge_routers_of(vll, now=now)
    return order


def _require_adopting(ends: Mapping[str, FoundEnd], now: datetime) -> None:
    routers = {end.router.pk: end.router for end in ends.values()}
    seen = ObservedRouter.objects.in_bulk(routers, field_name="router_id")
    for pk, router in routers.items():
        if not _adopts(seen.get(pk), now):
            raise RouterAdoptsNothing(router=router.name)


def _adopts(seen: ObservedRouter | None, now: datetime) -> bool:
    """An agent that does not know how to would refuse the document of the whole router."""
    return seen is not None and seen.adoption == "allowed" and seen.reported_at >= now - FRESH


def _asked(end: FoundEnd) -> EndRequest:
    port = Port.objects.filter(router=end.router, interface=end.port, retired_at__isnull=True).first()
    if port is None:
        raise FoundPortUnknown(router=end.router.name, interface=end.port)
    assert end.tagging is not None  # noqa: S101 - or it would be odd
    return EndRequest(
        port=port.pk,
        tagging=end.tagging,
        outer_vlan=end.outer_vlan,
        inner_vlan=end.inner_vlan,
        exact_match=end.exact_match,
    )


def _tunnel_lease(
    transport: Transport,
    key: int | None,
    ends: Mapping[str, FoundEnd],
    *,
    holder: uuid.UUID,
    now: datetime,
) -> LeasedTunnel:
    """Lease what the line's tunnel has. Raises TunnelKeyTaken, TunnelPairTaken."""
    if transport.family is None:
        return LeasedTunnel(addresses={"a": None, "z": None})
    addresses = {side: str(end.tunnel_address) for side, end in ends.items()}
    if key is not None and transport.encapsulation.leases_vni:
        vni_lease_named(key, holder=holder, now=now)
        return LeasedTunnel(vni=key, addresses=addresses)
    if key is not None:
        gre_key_lease_named(key, holder=holder, now=now)
        return LeasedTunnel(gre_key=key, addresses=addresses)
    gre_pair_lease_named((addresses["a"], addresses["z"]), holder=holder, now=now)
    return LeasedTunnel(addresses=addresses)
