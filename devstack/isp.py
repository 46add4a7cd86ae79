"""The small ISP of the demo and the lab: five routers in a ring. Two of them have agents.

The database rows, the configuration of VPP and the configuration of the stand-in are derived from this one
description, so they agree. This module has no side effects.
"""

from dataclasses import dataclass, field
from typing import Self

BACKBONE_IP_MTU = 9000
PORT_SPEED_BPS = 10_000_000_000
# The number of addresses of each router in addition to its loopback address. Before VPP 25.10, each GRE
# tunnel needs a separate pair of addresses.
EXTRA_TUNNEL_ADDRESSES = 3

ALPINE_DAIRY = "Alpine Dairy"
HARBOUR_PRESS = "Harbour Press"


@dataclass(frozen=True, slots=True)
class Port:
    """A customer port (UNI).

    `interface` is its name in VPP. `linux` is the veth behind a host-interface, and None for other ports.
    """

    interface: str
    customer: str
    linux: str | None = None

    @classmethod
    def on_veth(cls, linux: str, customer: str) -> Self:
        return cls(interface=f"host-{linux}", customer=customer, linux=linux)


# The latitude and longitude of each site, in degrees.
COORDINATES = {
    "Zurich": ("47.376900", "8.541700"),
    "Basel": ("47.559600", "7.588600"),
    "Bern": ("46.948000", "7.447400"),
    "Geneva": ("46.204400", "6.143200"),
    "Lugano": ("46.003700", "8.951100"),
}


@dataclass(frozen=True, slots=True)
class Router:
    number: int
    name: str
    site: str
    ports: tuple[Port, ...] = ()

    @property
    def has_agent(self) -> bool:
        return bool(self.ports)

    @property
    def loopback4(self) -> str:
        return f"10.255.0.{self.number}"

    @property
    def loopback6(self) -> str:
        return f"fd00:255::{self.number}"

    @property
    def tunnel_addresses(self) -> list[str]:
        """The addresses of the router's loopback, each with a prefix length of /32 or /128."""
        extra = range(1, EXTRA_TUNNEL_ADDRESSES + 1)
        return [
            self.loopback4,
            *(f"10.255.{self.number}.{n}" for n in extra),
            self.loopback6,
            *(f"fd00:255:{self.number}::{n}" for n in extra),
        ]


@dataclass(frozen=True, slots=True)
class Side:
    """A link as one of its routers sees it."""

    router: str
    far: str
    addresses: tuple[str, str]
    far_addresses: tuple[str, str]

    @property
    def linux(self) -> str:
        return f"bb-{self.far}"

    @property
    def interface(self) -> str:
        return f"host-{self.linux}"


@dataclass(frozen=True, slots=True)
class Link:
    number: int
    a: str
    z: str

    def sides(self) -> tuple[Side, Side]:
        a_addresses = (f"10.0.{self.number}.0/31", f"fd00:0:{self.number}::1/64")
        z_addresses = (f"10.0.{self.number}.1/31", f"fd00:0:{self.number}::2/64")
        return (
            Side(self.a, self.z, a_addresses, z_addresses),
            Side(self.z, self.a, z_addresses, a_addresses),
        )


@dataclass(frozen=True, slots=True)
class Isp:
    routers: tuple[Router, ...]
    links: tuple[Link, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = [router.name for router in self.routers]
        around = zip(names, names[1:] + names[:1], strict=True)
        object.__setattr__(self, "links", tuple(Link(n, a, z) for n, (a, z) in enumerate(around, start=1)))

    @property
    def agents(self) -> list[Router]:
        return [router for router in self.routers if router.has_agent]

    def router(self, name: str) -> Router:
        return next(router for router in self.routers if router.name == name)

    def sides_of(self, router: Router) -> list[Side]:
        return [side for link in self.links for side in link.sides() if side.router == router.name]


def small_isp(*, extra_ports: tuple[Port, ...] = ()) -> Isp:
    """Return the small ISP. `extra_ports` are added to both routers with agents.

    Rhino and Hippo are neighbours and have agents. The other routers only forward traffic.
    """
    ports = (
        Port.on_veth("cust1", ALPINE_DAIRY),
        Port.on_veth("cust2", ALPINE_DAIRY),
        Port.on_veth("cust3", HARBOUR_PRESS),
        *extra_ports,
    )
    return Isp(
        routers=(
            Router(1, "rhino", "Zurich", ports),
            Router(2, "hippo", "Basel", ports),
            Router(3, "zebra", "Bern"),
            Router(4, "panda", "Geneva"),
            Router(5, "otter", "Lugano"),
        )
    )
