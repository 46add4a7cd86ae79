"""Reasons why the underlay cannot carry a VLL. Sizes in bytes."""

import dataclasses
from typing import NamedTuple

from portal.core.encapsulations import Family, Transport
from portal.core.errors import DomainError
from portal.underlay.routers_and_links import Link, Router


class Capacity(NamedTuple):
    """The largest svc_mtu that a transport carries between the ends, with the requested tags."""

    transport: Transport
    largest_svc_mtu: int


class TransportRefused(DomainError):
    """No VLL between these two ends is possible with this transport.

    ``capacities``: the capacity of each tunnel that has a path of known MTU between the ends. ``fits``: the
    tunnels among them that carry the requested frames. ``requested``: the requested transport; None for any.
    ``also``: further obstacles to the same transport.
    """

    field: str = "transport"
    capacities: tuple[Capacity, ...] = ()
    fits: tuple[Transport, ...] = ()
    requested: Transport | None = None
    also: "tuple[TransportRefused, ...]" = ()


class PathTooNarrow(TransportRefused):
    """The path carries smaller packets than the line needs.

    ``link`` is the first of the narrowest links on the path; ``available`` is its IP MTU.
    """

    link: Link
    required: int
    available: int
    shortfall: int = dataclasses.field(init=False)
    field: str = "svc_mtu"

    def __post_init__(self) -> None:
        self.shortfall = self.required - self.available


class PathMtuUnknown(TransportRefused):
    """The line's frames may use these links, but the MTU of the links is unknown. The portal never assumes an
    MTU.
    """

    links: tuple[Link, ...]


class NoPath(TransportRefused):
    """The two routers have no path over in-service links of this family, in at least one direction."""

    a: Router
    z: Router
    family: Family


class FamilyMissing(TransportRefused):
    """``routers`` have no tunnel endpoint of this family.

    With ``auto``, the error means that the ends have no family in common; ``family`` is then the first that
    was tried.
    """

    routers: tuple[Router, ...]
    family: Family


class LocalAcrossRouters(TransportRefused):
    """L2XC joins two ports of one router, but these ends are on two routers."""

    a: Router
    z: Router


class TunnelWithinRouter(TransportRefused):
    """A tunnel joins two routers, but both ends are on this router."""

    router: Router
    transport: Transport


class EncapsulationMissing(TransportRefused):
    """The VPP of ``router`` does not support this transport: its agent reports that a plugin is not
    loaded.
    """

    router: Router
    transport: Transport


class TableUnknownToAgent(TransportRefused):
    """The underlay of ``router`` uses a FIB table other than 0, but the router's agent does not support
    tables.

    Such an agent would create tunnels in table 0.
    """

    router: Router
    table: int


class TableUnreadable(TransportRefused):
    """VPP does not show the FIB table of tunnels of this transport, but the underlay of ``router`` uses a
    table other than 0.
    """

    router: Router
    table: int
    transport: Transport


class EndpointMissing(TransportRefused):
    """The agent does not report the declared loopback of ``router``.

    The loopback must be on an interface that is up and in the FIB table of the underlay.
    """

    router: Router
    address: str
    table: int = 0


class EndpointUnrouted(TransportRefused):
    """The agent of ``far`` reports no route to the loopback of ``router``, or only a route that drops
    packets.
    """

    router: Router
    address: str
    far: Router
