"""Refusals of the allocators: each carries the facts a reader needs."""

from uuid import UUID

from portal.core.errors import Conflict, DomainError


class VlanTaken(Conflict):
    """Another VLL takes some of the frames that were requested on this port.

    ``vlans``: ``100`` or ``100.200``; None where the whole port was requested. ``whole_port_taken``: the
    other one takes all of it.
    """

    field: str
    port: str
    vlans: str | None
    whole_port_taken: bool
    # What has leased these frames. No reader is shown them.
    holders: tuple[UUID, ...] = ()


class VlanInForeignUse(Conflict):
    """An interface that the portal does not manage takes some of the requested frames.

    ``vlans``: ``100`` or ``100.200``; None where the whole port was requested. ``interface``: its name on the
    router, which reports it.
    """

    field: str
    port: str
    vlans: str | None
    interface: str


class NoVlanFree(Conflict):
    """No outer VLAN from 1 to 4094 is left on this port."""

    field: str
    port: str


class PortFull(Conflict):
    """The port's bookable bandwidth does not hold the requested rate. Rates in bit/s.

    ``link_bps``: the speed of the link where it is below the port's; else None.
    """

    field: str
    port: str
    requested_bps: int
    free_bps: int
    bookable_bps: int
    speed_bps: int
    link_bps: int | None = None


class CoresBelowBooked(Conflict):
    """The router would have fewer cores than its lines have booked; in cores, rounded to a thousandth."""

    router: str
    booked_cores: float
    bookable_cores: float
    field: str = "cores"


class RouterFull(Conflict):
    """The router's cores do not carry the packets of this rate besides what is booked.

    In cores of this router; ``free_bps`` (bit/s) is the rate that would fit with this transport.
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
    """Every VNI that is not reserved is leased or resting."""

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
    """A VNI or GRE key that a found line has is another line's, in quarantine, or reserved."""

    key: int


class TunnelPairTaken(Conflict):
    """The pair of addresses of a found line's GRE tunnel is another line's, or in quarantine."""

    pair: str


class VniRangeBackwards(DomainError):
    """No range of VNIs, both ends included."""

    first: int
    last: int
    minimum: int
    maximum: int
    field: str = "last"


class VniRangeInUse(Conflict):
    """VNIs of the range are leased or resting; ``example`` is the lowest of them."""

    first: int
    last: int
    count: int
    example: int
    field: str = "first"
