"""The small ISP of ``devstack.isp`` as database rows, and its users."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import permutations

from devstack.isp import small_isp
from portal.accounts.models import Customer, Membership, User
from portal.core import clock
from portal.inventory.models import (
    BackboneLink,
    ObservedInterface,
    ObservedRoute,
    ObservedRouter,
    Port,
    Router,
    Site,
    TunnelAddress,
)

GBIT = 10**9
_SMALL = small_isp()
_WITH_AGENTS = [router.name for router in _SMALL.agents]


@dataclass
class Isp:
    """The rows by name; a port is ``isp.ports["rhino:host-cust1"]``."""

    routers: dict[str, Router]
    links: dict[str, BackboneLink]
    ports: dict[str, Port]


def build_isp(*, owner: Customer, ip_mtu: int = 9000, agents: Sequence[str] = _WITH_AGENTS) -> Isp:
    """Create the dual-stack ring Rhino–Hippo–Zebra–Panda–Otter–Rhino.

    ``owner`` gets two ports on each router that has an agent.
    """
    now = clock.now()
    site = Site.objects.create(name="Zürich")
    rows = Router.objects.bulk_create(
        Router(
            name=router.name,
            site=site,
            loopback4=router.loopback4,
            loopback6=router.loopback6,
            agent_url=f"https://127.0.0.1:{9440 + router.number}" if router.name in agents else "",
            cpu="Ryzen 5950X",
            cores=4,
        )
        for router in _SMALL.routers
    )
    routers = {router.name: router for router in rows}
    links = BackboneLink.objects.bulk_create(
        BackboneLink(
            a_router=routers[link.a],
            a_interface="bb-next",
            a_ip_mtu=ip_mtu,
            z_router=routers[link.z],
            z_interface="bb-prev",
            z_ip_mtu=ip_mtu,
        )
        for link in _SMALL.links
    )
    ports = Port.objects.bulk_create(
        Port(
            router=routers[name],
            interface=f"host-cust{number}",
            customer=owner,
            speed_bps=10 * GBIT,
            bookable_bps=10 * GBIT,
        )
        for name in agents
        for number in (1, 2)
    )
    _observe([routers[name] for name in agents], now)
    return Isp(
        routers=routers,
        links={f"{link.a_router.name}-{link.z_router.name}": link for link in links},
        ports={str(port): port for port in ports},
    )


def _observe(routers: Sequence[Router], now: datetime) -> None:
    """Store a report of each router: a VPP, both backbone interfaces up, routes to all others."""
    ObservedRouter.objects.bulk_create(
        ObservedRouter(
            router=router,
            reported_at=now,
            boot_id="d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10",
            sent_ms=0,
            agent_version="0.1.0",
            vpp_connected=True,
            encapsulations=["l2xc", "vxlan", "geneve", "gre"],
        )
        for router in routers
    )
    ObservedInterface.objects.bulk_create(
        ObservedInterface(router=router, name=name, admin_up=True, link_up=True)
        for router in routers
        for name in ("bb-next", "bb-prev", "host-cust1", "host-cust2")
    )
    TunnelAddress.objects.bulk_create(
        TunnelAddress(router=router, address=router.loopback(family))
        for router in routers
        for family in (4, 6)
    )
    ObservedRoute.objects.bulk_create(
        ObservedRoute(router=here, address=there.loopback(family), reachable=True)
        for here, there in permutations(routers, 2)
        for family in (4, 6)
    )


def member(name: str, customer: Customer, role: str) -> User:
    """Create a user with one membership."""
    user = User.objects.create_user(name, password="correct horse battery")
    Membership.objects.create(user=user, customer=customer, role=role)
    return user
