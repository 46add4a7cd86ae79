"""The small ISP of ``devstack.isp`` as rows, and who uses it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    """Rows by name; ports as ``isp.ports["rhino:host-cust1"]``."""

    routers: dict[str, Router] = field(default_factory=dict)
    links: dict[str, BackboneLink] = field(default_factory=dict)
    ports: dict[str, Port] = field(default_factory=dict)


def build_isp(*, owner: Customer, ip_mtu: int = 9000, agents: Sequence[str] = _WITH_AGENTS) -> Isp:
    """Rhino–Hippo–Zebra–Panda–Otter–Rhino, dual stack, two ports of ``owner`` on each that has an agent."""
    isp = Isp()
    now = clock.now()
    site = Site.objects.create(name="Zürich")
    for router in _SMALL.routers:
        isp.routers[router.name] = Router.objects.create(
            name=router.name,
            site=site,
            loopback4=router.loopback4,
            loopback6=router.loopback6,
            agent_url=f"https://127.0.0.1:{9440 + router.number}" if router.name in agents else "",
            cpu="Ryzen 5950X",
            cores=4,
        )
    for link in _SMALL.links:
        isp.links[f"{link.a}-{link.z}"] = BackboneLink.objects.create(
            a_router=isp.routers[link.a],
            a_interface="bb-next",
            a_ip_mtu=ip_mtu,
            z_router=isp.routers[link.z],
            z_interface="bb-prev",
            z_ip_mtu=ip_mtu,
        )
    for name in agents:
        _observe(isp.routers[name], now)
        for number in (1, 2):
            port = Port.objects.create(
                router=isp.routers[name],
                interface=f"host-cust{number}",
                customer=owner,
                speed_bps=10 * GBIT,
                bookable_bps=10 * GBIT,
            )
            isp.ports[str(port)] = port
    for here, there in permutations(agents, 2):
        for family in (4, 6):
            ObservedRoute.objects.create(
                router=isp.routers[here], address=isp.routers[there].loopback(family), reachable=True
            )
    return isp


def _observe(router: Router, now: object) -> None:
    ObservedRouter.objects.create(
        router=router,
        reported_at=now,
        boot_id="d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10",
        sent_ms=0,
        agent_version="0.1.0",
        vpp_connected=True,
        encapsulations=["l2xc", "vxlan", "geneve", "gre"],
    )
    for name in ("bb-next", "bb-prev"):
        ObservedInterface.objects.create(router=router, name=name, admin_up=True, link_up=True)
    for family in (4, 6):
        TunnelAddress.objects.create(router=router, address=router.loopback(family))


def member(name: str, customer: Customer, role: str) -> User:
    """A user with one membership."""
    user = User.objects.create_user(name, password="correct horse battery")
    Membership.objects.create(user=user, customer=customer, role=role)
    return user
