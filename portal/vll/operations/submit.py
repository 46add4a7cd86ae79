"""Ordering a new VLL: check everything, lease everything, and leave the rest to the routers' jobs."""

import uuid
from datetime import datetime

from django.db import transaction

from portal.accounts.models import Customer, User
from portal.allocation.bandwidth import bandwidth_book
from portal.allocation.gre_pairs import gre_pair_lease
from portal.allocation.vlans import outer_vlan_of, vlan_lease
from portal.allocation.vnis import vni_lease
from portal.core.frames import uni_frame
from portal.core.tagging import carried_tags
from portal.core.transport import Encapsulation, Family, Transport
from portal.events.operations import announce
from portal.inventory.models import Port, Router
from portal.underlay.encapsulation import Serviceable, serviceability
from portal.underlay.queries import current_topology, path_policy
from portal.vll.errors import CirOutOfRange, FrameTooLargeForPort
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.operations.converging import converge_routers_of
from portal.vll.operations.endpoints import EndRequest, check_customer, check_distinct, check_end, lock_ports
from portal.vll.states import OrderAction

# 1 bit/s to 1 Tbit/s: beyond what a port could be.
MIN_CIR_BPS, MAX_CIR_BPS = 1, 10**12


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
) -> Order:
    """Accept an order for a new VLL, or raise a DomainError and leave no trace.

    ``svc_mtu`` in bytes, ``cir_bps`` in bit/s, ``transport`` ``auto`` or a Transport's value. In one
    transaction: rules, MTU of the path, leases, the VLL with its ends, the order, an event, outbox rows.
    """
    if not MIN_CIR_BPS <= cir_bps <= MAX_CIR_BPS:
        raise CirOutOfRange(value=cir_bps, minimum=MIN_CIR_BPS, maximum=MAX_CIR_BPS)
    for end, side in ((a_end, "a"), (z_end, "z")):
        check_end(end, side=side)
    a_port, z_port = lock_ports(user, a_end, z_end)
    customer = check_customer(user, a_port, z_port)
    check_distinct(a_port, z_port, a_end, z_end)
    tags = carried_tags((end.tagging, end.exact_match) for end in (a_end, z_end))
    serviceable = _serviceable(a_port.router, z_port.router, svc_mtu, tags, transport, now)
    for end, port, side in ((a_end, a_port, "a"), (z_end, z_port, "z")):
        frame = uni_frame(svc_mtu, tagging=end.tagging, carried_tags=tags)
        if frame > port.max_frame:
            field = f"{side}_end.port"
            raise FrameTooLargeForPort(field=field, port=str(port), frame=frame, max_frame=port.max_frame)

    vll_id = uuid.uuid4()
    vlans = _lease_on_ports(vll_id, (a_end, z_end), (a_port, z_port), cir_bps, now)
    vni, addresses = _lease_transport(vll_id, serviceable.transport, a_port.router, z_port.router, now)
    vll = Vll.objects.create(
        id=vll_id,
        customer=customer,
        description=description,
        created_at=now,
        svc_mtu=svc_mtu,
        cir_bps=cir_bps,
        requested_transport=transport,
        encapsulation=serviceable.transport.encapsulation,
        family=serviceable.transport.family,
        vni=vni,
        frame=serviceable.frame,
    )
    for side, end, port, outer, address in zip(
        "az", (a_end, z_end), (a_port, z_port), vlans, addresses, strict=True
    ):
        VllEnd.objects.create(
            vll=vll,
            side=side,
            port=port,
            tagging=end.tagging,
            requested_outer_vlan=end.requested_outer_vlan,
            outer_vlan=outer,
            inner_vlan=end.inner_vlan,
            exact_match=end.exact_match,
            tunnel_address=address,
        )
    return _acknowledge(vll, customer, user, now)


def _serviceable(
    a_router: Router, z_router: Router, svc_mtu: int, tags: int, transport: str, now: datetime
) -> Serviceable:
    return serviceability(
        current_topology(now=now),
        a_router.pk,
        z_router.pk,
        a_families=_families(a_router),
        z_families=_families(z_router),
        svc_mtu=svc_mtu,
        carried_tags=tags,
        requested=None if transport == "auto" else Transport(transport),
        policy=path_policy(),
    )


def _families(router: Router) -> list[Family]:
    return [family for family in Family if router.loopback(family)]


def _lease_on_ports(
    vll_id: uuid.UUID,
    ends: tuple[EndRequest, EndRequest],
    ports: tuple[Port, Port],
    cir_bps: int,
    now: datetime,
) -> list[int | None]:
    """VLANs and bandwidth on both ports; the outer VLANs that were leased, A first."""
    vlans = []
    for side, end, port in zip("az", ends, ports, strict=True):
        lease = vlan_lease(
            port=port,
            holder=vll_id,
            side=side,
            tagging=end.tagging,
            outer=end.requested_outer_vlan,
            inner=end.inner_vlan,
            exact_match=end.exact_match,
            now=now,
        )
        vlans.append(outer_vlan_of(lease))
        bandwidth_book(port=port, holder=vll_id, side=side, cir_bps=cir_bps)
    return vlans


def _lease_transport(
    vll_id: uuid.UUID, transport: Transport, a_router: Router, z_router: Router, now: datetime
) -> tuple[int | None, tuple[str | None, str | None]]:
    """The VNI, if this transport has one, and the tunnel's addresses."""
    family = transport.family
    if family is None:
        return None, (None, None)
    if transport.encapsulation is Encapsulation.GRE:
        pair = gre_pair_lease(a_router=a_router, z_router=z_router, family=family, holder=vll_id, now=now)
        return None, pair
    return vni_lease(holder=vll_id, now=now), (a_router.loopback(family), z_router.loopback(family))


def _acknowledge(vll: Vll, customer: Customer, user: User, now: datetime) -> Order:
    order = Order.objects.create(
        vll=vll,
        customer=customer,
        action=OrderAction.ADD,
        revision=vll.revision,
        ordered_by=user.username,
        ordered_at=now,
        state_at=now,
    )
    announce(
        "order.acknowledged",
        now=now,
        customer_id=customer.pk,
        vll_id=vll.pk,
        order_id=order.pk,
        actor=user.username,
        data={"action": order.action, "transport": vll.transport, "vni": vll.vni},
    )
    converge_routers_of(vll, now=now)
    return order
