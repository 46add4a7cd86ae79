"""Errors of the allocators. Each error has the facts for its message."""

from uuid import UUID

from portal.core.errors import Conflict, DomainError


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


class VlanInForeignUse(Conflict):
    """An interface that the portal does not manage takes some of the requested frames.

    ``vlans``: the requested VLANs, such as ``100`` or ``100.200``; None if the whole port was requested.
    ``interface``: the name of the interface on the router, as the agent reports it.
    """

    field: str
    port: str
    vlans: str | None
    interface: str


class NoVlanFree(Conflict):
    """No outer VLAN from 1 to 4094 is free on this port."""

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


class CoresBelowBooked(Conflict):
    """The router would have fewer cores than its lines have booked. Figures are in cores, rounded to a
    thousandth.
    """

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


class VniPoolExhausted(Conflict):
    """Every VNI that is not reserved is leased or in cool-down."""

    field: str = "transport"


class GreKeysExhausted(Conflict):
    """No free GRE key was found."""

    field: str = "transport"


class GrePairsExhausted(Conflict):
    """No pair of observed and routed tunnel addresses is free between these routers."""

    a_router: str
    z_router: str
    family: int
    field: str = "transport"


class TunnelKeyTaken(Conflict):
    """The VNI or GRE key of a found line belongs to another line, is in quarantine, or is reserved."""

    key: int


class TunnelPairTaken(Conflict):
    """The address pair of a found line's GRE tunnel belongs to another line or is in quarantine."""

    pair: str


class VniRangeBackwards(DomainError):
    """The last VNI of the range is lower than the first VNI. A range includes both."""

    first: int
    last: int
    minimum: int
    maximum: int
    field: str = "last"


class VniRangeInUse(Conflict):
    """VNIs of the range are leased or in cool-down; ``example`` is the lowest of them."""

    first: int
    last: int
    count: int
    example: int
    field: str = "first"
