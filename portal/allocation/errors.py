"""Errors of the allocators."""

from uuid import UUID

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError
from portal.core.reader_texts import at_most_text


class VlanTaken(Conflict):
    """Another VLL takes some of the requested frames on this port.

    ``vlans``: the requested VLANs, such as ``100`` or ``100.200``; None if the whole port was requested.
    ``whole_port_taken``: the other VLL takes the whole port.
    """

    field: str
    port: str
    vlans: str | None
    whole_port_taken: bool
    # The owners of these frames. Messages do not show them.
    owners: tuple[UUID, ...] = ()

    @property
    def sentence(self) -> str:
        if self.whole_port_taken:
            text = _("Another line uses all of {port}. Choose another port.")
        elif self.vlans is None:
            text = _(
                "Other lines use VLANs on {port}, so the whole port is not free. Choose another port, or "
                "a VLAN on this one."
            )
        else:
            text = _("VLAN {vlans} on {port} is used by another line. Choose another one, or let us choose.")
        return self.filled(text)


class VlanInForeignUse(Conflict):
    """An interface that the portal does not manage takes some of the requested frames.

    ``vlans``: the requested VLANs, such as ``100`` or ``100.200``; None if the whole port was requested.
    ``interface``: the name of the interface on the router, as the agent reports it.
    """

    field: str
    port: str
    vlans: str | None
    interface: str

    @property
    def sentence(self) -> str:
        if self.vlans is None:
            text = _(
                "{port} is also used by {interface}, which this portal does not manage. Choose another port, "
                "or ask the NOC about that interface."
            )
        else:
            text = _(
                "VLAN {vlans} on {port} is used by {interface}, which this portal does not manage. Choose "
                "another VLAN, or let us choose."
            )
        return self.filled(text)


class NoVlanFree(Conflict):
    """No outer VLAN from 1 to 4094 is free on this port."""

    text = _("{port} has no suitable VLAN left. Remove a line from it, or choose another port.")
    field: str
    port: str


class PortFull(Conflict):
    """The port has less bookable bandwidth than the requested rate. Rates in bit/s.

    ``link_bps``: the speed of the link if it is below the speed of the port; else None.
    """

    field: str
    port: str
    requested_bps: int
    free_bps: int
    bookable_bps: int
    speed_bps: int
    link_bps: int | None = None

    @property
    def sentence(self) -> str:
        if self.link_bps is not None:
            text = _(
                "{port} runs at {link} instead of {speed} and has {free} left, but this takes {requested}. "
                "Order less, or choose another port."
            )
        elif self.bookable_bps == self.speed_bps:
            text = _(
                "{port} has {free} left, but this takes {requested}. Order less, or choose another port."
            )
        else:
            text = _(
                "{port} has {free} left of the {bookable} that can be booked on its {speed}, but this "
                "takes {requested}. Order less, or choose another port."
            )
        return self.filled(text)


class CoresBelowBooked(Conflict):
    """The router would have fewer cores than its lines booked. Figures are in cores, rounded to 0.001."""

    text = _(
        "Lines have booked {booked_cores} cores of {router}, and {bookable_cores} would be left. Move "
        "lines away first, or accept that they may lose packets."
    )
    router: str
    booked_cores: float
    bookable_cores: float
    field: str = "cores"


class RouterFull(Conflict):
    """The router's free cores cannot forward the packets of the requested rate.

    The values are in cores of this router, except ``free_bps`` (bit/s), the rate that would fit with this
    transport.
    """

    field: str
    router: str
    transport: str
    requested_cores: float
    bookable_cores: float
    booked_cores: float
    free_cores: float
    free_bps: int

    @property
    def sentence(self) -> str:
        text = _(
            "{router} cannot forward this much: it would take {requested} of its processor cores, and {free}"
            " of {bookable} are free."
        ).format(
            router=self.router,
            requested=self.requested_cores,
            free=self.free_cores,
            bookable=self.bookable_cores,
        )
        if not self.free_bps:
            return text + " " + _("Choose a port on another router, or ask the NOC for more cores.")
        more = _("Up to {free} would fit: order less, or choose a port on another router.")
        return text + " " + more.format(free=at_most_text(self.free_bps))


class VniPoolExhausted(Conflict):
    """Every VNI that is not reserved is leased or in cool-down."""

    text = _("Every VNI is leased, cooling down or reserved. Ask the NOC to enlarge the pool.")
    field: str = "transport"


class GreKeysExhausted(Conflict):
    """No free GRE key was found."""

    text = _("No free GRE key was found. Choose VXLAN or GENEVE.")
    field: str = "transport"


class GrePairsExhausted(Conflict):
    """No pair of observed and routed tunnel addresses is free between these routers."""

    text = _(
        "No pair of IPv{family} tunnel addresses between {a_router} and {z_router} is free, observed and"
        " routed. Choose another transport or a smaller packet size, or ask the NOC for more tunnel"
        " addresses."
    )
    a_router: str
    z_router: str
    family: int
    field: str = "transport"


class TunnelKeyTaken(Conflict):
    """The VNI or GRE key of a found line belongs to another line, is in quarantine, or is reserved."""

    text = _(
        "Another line uses the key {key}, or the key is reserved. Change the key on both routers, or end "
        "the reservation."
    )
    key: int


class TunnelPairTaken(Conflict):
    """The address pair of a found line's GRE tunnel belongs to another line or is in quarantine."""

    text = _("Another line has a GRE tunnel between {pair} already. Remove that line first.")
    pair: str


class VniRangeBackwards(DomainError):
    """The last VNI of the range is lower than the first VNI. A range includes both."""

    text = _(
        "{first} to {last} is not a range of VNIs. Enter two numbers from {minimum} to {maximum}, in order."
    )
    first: int
    last: int
    minimum: int
    maximum: int
    field: str = "last"


class VniRangeInUse(Conflict):
    """VNIs of the range are leased or in cool-down; ``example`` is the lowest of them."""

    text = _(
        "{count} VNIs from {first} to {last} are leased or cooling down, such as {example}. Reserve "
        "another range, or wait until their lines are gone."
    )
    first: int
    last: int
    count: int
    example: int
    field: str = "first"
