"""A small ISP for tests: five routers in a ring, two of them with agents, and who uses it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

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
_NAMES = ["rhino", "hippo", "zebra", "panda", "otter"]
_WITH_AGENTS = ["rhino", "hippo"]


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
    for number, name in enumerate(_NAMES, start=1):
        isp.routers[name] = Router.objects.create(
            name=name,
            site=site,
            loopback4=f"10.255.0.{number}",
            loopback6=f"fd00:255::{number}",
            agent_url=f"https://127.0.0.1:{9440 + number}" if name in agents else "",
            cpu="Ryzen 5950X",
            cores=4,
        )
    for number, name in enumerate(_NAMES):
        far = _NAMES[(number + 1) % len(_NAMES)]
        isp.links[f"{name}-{far}"] = BackboneLink.objects.create(
            a_router=isp.routers[name],
            a_interface="bb-next",
            a_ip_mtu=ip_mtu,
            z_router=isp.routers[far],
            z_interface="bb-prev",
            z_ip_mtu=ip_mtu,
        )
    for name in agents:
        router = isp.routers[name]
        _observe(router, now)
        for number in (1, 2):
            port = Port.objects.create(
                router=router,
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
