"""Reasons why the underlay cannot carry a VLL. Sizes in bytes."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError
from portal.core.network.encapsulations import Family, Transport
from portal.underlay.topology import Link, Router


class Capacity(NamedTuple):
    """The largest svc_mtu that a transport carries between the ends, with the requested tags."""

    transport: Transport
    largest_svc_mtu: int


class TransportRefused(DomainError):
    """No VLL between these two ends is possible with this transport.

    ``capacities``: the capacity of each tunnel that has a path of known MTU between the ends. ``fits``: the
    tunnels among them that carry the requested frames. ``requested``: the requested transport; None for any.
    ``also``: further obstacles to the same transport. ``obstacle``: the sentence about the obstacle, if a
    sentence about alternatives follows.
    """

    code = ""
    obstacle: ClassVar[Any] = ""
    field: str = "transport"
    capacities: tuple[Capacity, ...] = ()
    fits: tuple[Transport, ...] = ()
    requested: Transport | None = None
    also: "tuple[TransportRefused, ...]" = ()

    @property
    def sentence(self) -> str:
        return f"{self.filled(self.obstacle)} {self._alternatives()}" if self.obstacle else super().sentence

    def _alternatives(self) -> str:
        """Return the transports that fit, else the largest packet that any transport would carry."""
        if self.fits:
            return _("These transports would carry it: {transports}.").format(
                transports=", ".join(transport.display_name for transport in self.fits)
            )
        if self.capacities:
            largest = max(self.capacities, key=lambda capacity: capacity.largest_svc_mtu)
            return _("{transport} would carry packets of up to {largest} bytes.").format(
                largest=largest.largest_svc_mtu, transport=largest.transport.display_name
            )
        return str(_("No other transport would carry it either. Ask the NOC."))


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

    @property
    def sentence(self) -> str:
        """Return a message with the largest packet that the path carries for the request. Add a sentence if
        another transport would carry larger packets.
        """
        link = _("link {link} has an IP MTU of {available} bytes, but {required} are needed").format(
            link=self.link.name, available=self.available, required=self.required
        )
        largest = {each.transport: each.largest_svc_mtu for each in self.capacities}
        carried = largest.get(self.requested) if self.requested else max(largest.values(), default=None)
        if carried is None:
            too_large = _("Packets of this size do not fit this path: {link}, {shortfall} more.").format(
                link=link, shortfall=self.shortfall
            )
            return f"{too_large} {self._alternatives()}"
        text = _(
            "This path carries packets of up to {carried} bytes, {shortfall} fewer than requested: {link}."
        )
        if self.requested:
            text = _(
                "With {transport} this path carries packets of up to {carried} bytes, {shortfall} fewer than "
                "requested: {link}."
            )
        sentence = text.format(
            carried=carried,
            shortfall=self.shortfall,
            link=link,
            transport=self.requested.display_name if self.requested else "",
        )
        best = max(largest, key=lambda transport: largest[transport])
        if largest[best] <= carried:
            return sentence
        more = _("{transport} would carry up to {largest}.").format(
            transport=best.display_name, largest=largest[best]
        )
        return f"{sentence} {more}"


class PathMtuUnknown(TransportRefused):
    """The MTU of links that the line's frames may use is unknown. The portal never assumes an MTU."""

    text = _(
        "The IP MTU of {links} is not known, and it is never guessed. Ask the NOC: it must be "
        "declared, or the silent agent must report again."
    )
    links: tuple[Link, ...]


class NoPath(TransportRefused):
    """The two routers have no path over in-service links of this family, in at least one direction."""

    obstacle = _("No IPv{family} links in service join {a} and {z} in both directions.")
    a: Router
    z: Router
    family: Family


class FamilyMissing(TransportRefused):
    """``routers`` have no tunnel endpoint of this family.

    With ``auto``, the error means that the ends have no family in common; ``family`` is then the first that
    was tried.
    """

    obstacle = _("These routers have no IPv{family} loopback for the end of a tunnel: {routers}.")
    routers: tuple[Router, ...]
    family: Family


class LocalAcrossRouters(TransportRefused):
    """L2XC joins two ports of one router, but these ends are on two routers."""

    obstacle = _("A local cross-connect joins two ports of one router; these are on {a} and {z}.")
    a: Router
    z: Router


class TunnelWithinRouter(TransportRefused):
    """A tunnel joins two routers, but both ends are on this router."""

    text = _("Both ports are on {router}; {transport} joins two routers. Choose auto or l2xc.")
    router: Router
    transport: Transport


class EncapsulationMissing(TransportRefused):
    """The VPP of ``router`` does not support this transport: its agent reports that a plugin is not
    loaded.
    """

    obstacle = _("The VPP of {router} does not support {transport}: the plugin is missing.")
    router: Router
    transport: Transport


class TableUnknownToAgent(TransportRefused):
    """The underlay of ``router`` uses a FIB table other than 0, but the router's agent does not support
    tables.

    Such an agent would create tunnels in table 0.
    """

    text = _(
        "The underlay of {router} is in table {table}, and its agent is of an earlier release that"
        " creates tunnels only in table 0. Upgrade the agent."
    )
    router: Router
    table: int


class TableUnreadable(TransportRefused):
    """VPP does not show the FIB table of tunnels of this transport, but the underlay of ``router`` uses a
    table other than 0.
    """

    obstacle = _(
        "The underlay of {router} is in table {table}, and VPP does not say in which table a tunnel of"
        " {transport} is."
    )
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

    @property
    def sentence(self) -> str:
        if self.table:
            text = _("{router} does not have its tunnel endpoint {address} in table {table} at the moment.")
        else:
            text = _("{router} does not have its tunnel endpoint {address} at the moment.")
        return f"{self.filled(text)} {self._alternatives()}"


class EndpointUnrouted(TransportRefused):
    """The agent of ``far`` reports no route to the loopback of ``router``, or only a route that drops
    packets.
    """

    obstacle = _("{far} has no route to {address}, the tunnel endpoint of {router}, at the moment.")
    router: Router
    address: str
    far: Router
