"""Reasons why the underlay cannot carry a VLL. Sizes in bytes."""

import dataclasses
from typing import NamedTuple

from portal.core.encapsulations import Family, Transport
from portal.core.errors import DomainError
from portal.underlay.routers_and_links import Link, Router


class Capacity(NamedTuple):
    """The largest svc_mtu that a transport carries between the ends, with the tags that were asked for."""

    transport: Transport
    largest_svc_mtu: int


class TransportRefused(DomainError):
    """No VLL between these two ends in this way.

    ``capacities``: what each tunnel would carry between the ends, for those that have a path of known
    MTU; ``fits``: those of them that would carry what was asked for; ``requested``: the transport that was
    asked for, None for any. ``also``: what else stands against the same transport.
    """

    field: str = "transport"
    capacities: tuple[Capacity, ...] = ()
    fits: tuple[Transport, ...] = ()
    requested: Transport | None = None
    also: "tuple[TransportRefused, ...]" = ()


class PathTooNarrow(TransportRefused):
    """The path carries smaller packets than the line needs.

    ``link`` is the first of the narrowest on the way; ``available`` is its IP MTU.
    """

    link: Link
    required: int
    available: int
    shortfall: int = dataclasses.field(init=False)
    field: str = "svc_mtu"

    def __post_init__(self) -> None:
        self.shortfall = self.required - self.available


class PathMtuUnknown(TransportRefused):
    """These links may be used and their MTU is not known; it is never assumed."""

    links: tuple[Link, ...]


class NoPath(TransportRefused):
    """No links of this family that are in service join the two routers, in one direction at least."""

    a: Router
    z: Router
    family: Family


class FamilyMissing(TransportRefused):
    """``routers`` have no tunnel endpoint of this family. With ``auto`` the ends share no family at all,
    and ``family`` is the one that was tried first."""

    routers: tuple[Router, ...]
    family: Family


class LocalAcrossRouters(TransportRefused):
    """L2XC joins two ports of one router; these ends are on two."""

    a: Router
    z: Router


class TunnelWithinRouter(TransportRefused):
    """A tunnel joins two routers; both ends are on this one."""

    router: Router
    transport: Transport


class EncapsulationMissing(TransportRefused):
    """The VPP of ``router`` cannot do this transport: a plugin is not loaded, by what its agent reports."""

    router: Router
    transport: Transport


class TableUnknownToAgent(TransportRefused):
    """The underlay of ``router`` is in another FIB table than 0, and its agent is of before there were such:
    it would make tunnels in table 0."""

    router: Router
    table: int


class TableUnreadable(TransportRefused):
    """VPP does not say in which table a tunnel of this transport is, and ``router`` has not table 0."""

    router: Router
    table: int
    transport: Transport


class EndpointMissing(TransportRefused):
    """The declared loopback of ``router`` is not on it, on an interface that is up and in the underlay's FIB
    table, by what its agent reports."""

    router: Router
    address: str
    table: int = 0


class EndpointUnrouted(TransportRefused):
    """``far`` has no route, other than a drop, to the loopback of ``router``, by what its agent reports."""

    router: Router
    address: str
    far: Router
