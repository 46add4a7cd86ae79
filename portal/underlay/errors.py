"""Why the underlay cannot carry a VLL. Sizes in bytes."""

from dataclasses import dataclass

from portal.core.errors import DomainError
from portal.core.transport import Family, Transport
from portal.underlay.links import Link, Router


@dataclass(frozen=True, slots=True)
class Capacity:
    """The largest svc_mtu that a transport carries between the ends, with the tags that were asked for."""

    transport: Transport
    largest_svc_mtu: int


class NotServiceable(DomainError):
    """No VLL between these two ends in this way.

    ``capacities``: what each tunnel would carry between the ends, for those that have a path of known
    MTU; ``fits``: those of them that would carry what was asked for, GRE included. ``also``: what else
    stands against the same transport.
    """

    field = "transport"
    capacities: tuple[Capacity, ...] = ()
    fits: tuple[Transport, ...] = ()
    also: "tuple[NotServiceable, ...]" = ()


class PathTooNarrow(NotServiceable):
    """``link`` is the first of the narrowest on the way; ``available`` is its IP MTU."""

    field = "svc_mtu"

    def __init__(self, *, link: Link, required: int, available: int) -> None:
        super().__init__(link.name, required, available)
        self.link = link
        self.required = required
        self.available = available
        self.shortfall = required - available


class PathMtuUnknown(NotServiceable):
    """These links may be used and their MTU is not known; it is never assumed."""

    def __init__(self, *, links: tuple[Link, ...]) -> None:
        super().__init__(*(link.name for link in links))
        self.links = links


class NoPath(NotServiceable):
    """No links of this family that are in service join the two routers, in one direction at least."""

    def __init__(self, *, a: Router, z: Router, family: Family) -> None:
        super().__init__(a.name, z.name, family)
        self.a = a
        self.z = z
        self.family = family


class FamilyMissing(NotServiceable):
    """``routers`` have no tunnel endpoint of this family. With ``auto`` the ends share no family at all,
    and ``family`` is the one that was tried first."""

    def __init__(self, *, routers: tuple[Router, ...], family: Family) -> None:
        super().__init__(family, *(router.name for router in routers))
        self.routers = routers
        self.family = family


class LocalAcrossRouters(NotServiceable):
    """L2XC joins two ports of one router; these ends are on two."""

    def __init__(self, *, a: Router, z: Router) -> None:
        super().__init__(a.name, z.name)
        self.a = a
        self.z = z


class TunnelWithinRouter(NotServiceable):
    """A tunnel joins two routers; both ends are on this one."""

    def __init__(self, *, router: Router, transport: Transport) -> None:
        super().__init__(router.name, transport)
        self.router = router
        self.transport = transport


class EncapsulationMissing(NotServiceable):
    """The VPP of ``router`` cannot do this transport: a plugin is not loaded, by what its agent reports."""

    def __init__(self, *, router: Router, transport: Transport) -> None:
        super().__init__(router.name, transport)
        self.router = router
        self.transport = transport


class EndpointMissing(NotServiceable):
    """The declared loopback of ``router`` is not on it, by what its agent reports."""

    def __init__(self, *, router: Router, address: str) -> None:
        super().__init__(router.name, address)
        self.router = router
        self.address = address


class EndpointUnrouted(NotServiceable):
    """``far`` has no route, other than a drop, to the loopback of ``router``, by what its agent reports."""

    def __init__(self, *, router: Router, address: str, far: Router) -> None:
        super().__init__(router.name, address, far.name)
        self.router = router
        self.address = address
        self.far = far
