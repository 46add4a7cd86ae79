"""Errors of refused orders, with their facts. Their messages are in ``portal.vll.error_messages``.

Sizes in bytes, rates in bit/s.
"""

from datetime import datetime

from portal.allocation.errors import VlanTaken
from portal.core.errors import Conflict, DomainError


class PortUnknown(DomainError):
    """The port does not exist, or this user may not see it. The error does not show which reason applies."""

    field: str
    port: int


class VlanCoolingOff(VlanTaken):
    """A removed line of the same customer still has the requested frames.

    ``line``: the id of the removed line. It keeps the frames until ``until``, so that the removal can be
    undone. ``free_now``: the request to the API that frees them immediately. ``until`` and ``free_now`` are
    null if the removal is already under way.
    """

    line: str
    description: str
    until: datetime | None
    free_now: str | None


class SimilarOrder(Conflict):
    """The customer ordered an equal line within the last hour. Before a page sends the order again, it asks
    the user.

    ``order``: the id of the newest equal order. ``count``: the number of equal orders.
    """

    order: str
    count: int


class NotAllowedToOrder(DomainError):
    """The user sees the customer but may not order for it."""

    customer: str


class PortsOfTwoCustomers(DomainError):
    """The ports belong to two customers. Both ports of a VLL must belong to one customer."""

    a_port: str
    z_port: str
    field: str = "z_end.port"


class PortHasNoCustomer(DomainError):
    """The port has no customer yet."""

    field: str
    port: str


class PortOfAnotherCustomer(DomainError):
    """The port belongs to another customer. The ends of a line can only move to ports of its customer."""

    field: str
    port: str
    customer: str


class EndsAreTheSame(DomainError):
    """Both ends select the same frames of the same port."""

    port: str
    field: str = "z_end"


class CirOutOfRange(DomainError):
    """A committed information rate below the operator's minimum or above 1 Tbit/s. In bit/s."""

    value: int
    minimum: int
    maximum: int
    field: str = "cir_bps"


class EirOutOfRange(DomainError):
    """An excess information rate that is negative or above 1 Tbit/s. In bit/s."""

    value: int
    minimum: int
    maximum: int
    field: str = "eir_bps"


class PeakAbovePort(DomainError):
    """CIR and EIR together are more than the speed of the port. In bit/s."""

    port: str
    peak_bps: int
    speed_bps: int
    field: str = "eir_bps"


class BurstOutOfRange(DomainError):
    """A burst size that is smaller than the line's largest frame, or larger than policers support (bytes)."""

    field: str
    value: int
    minimum: int
    maximum: int


class ExcessBurstWithoutRate(DomainError):
    """An EBS for a line without an EIR: nothing would fill that bucket."""

    value: int
    field: str = "ebs_bytes"


class LinkLossNeedsWholePorts(DomainError):
    """Link loss forwarding for a line that shares a port.

    The port's other users would go down. ``side``: "A" or "Z".
    """

    field: str
    side: str


class LinkLossNeedsUni(DomainError):
    """Link loss forwarding at a port towards another operator."""

    field: str
    port: str


class LinkLossUnsupported(DomainError):
    """Link loss forwarding on a router whose agent does not support it."""

    field: str
    router: str


class LinkLossPortInUse(DomainError):
    """Link loss forwarding at a port that a foreign interface uses too, according to the port's router."""

    field: str
    port: str
    interface: str


class PortShutDown(Conflict):
    """A line must stay managed while one of its ports is shut down because of the far end's link."""

    code = "port-kept-down"


class RouterHasNoAgent(DomainError):
    """The port's router carries traffic but has no agent, so no VLL can have an end there."""

    field: str
    router: str


class RouterInMaintenance(Conflict):
    """The router is under maintenance and takes no new lines."""

    field: str
    router: str


class RouterIsDrained(Conflict):
    """A drained router stays under maintenance until the drain ends."""

    router: str


class RouterIsDead(Conflict):
    """A router that was declared dead stays under maintenance until that declaration is withdrawn."""

    router: str


class FrameTooLargeForPort(DomainError):
    """The frame on the UNI's wire, tags included, is larger than the port accepts. In bytes."""

    field: str
    port: str
    frame: int
    max_frame: int
    largest_svc_mtu: int


class OrderIsOpen(Conflict):
    """The VLL has an order under way."""

    order_id: str
    action: str
    state: str


class WrongLifecycle(Conflict):
    """The VLL's life cycle does not allow this action."""

    lifecycle: str
    action: str


class LineHasNoTunnel(Conflict):
    """Both ends of the line are on one router, so there is no tunnel to test."""


class RouterSendsNoTestFrames(Conflict):
    """The routers at the line's ends have to send the test frames, but these routers cannot."""

    routers: str


class RouterDoesNotAnswer(Conflict):
    """These routers do not respond, but a test must disconnect and reconnect the line within seconds."""

    routers: str


class ActivationTestFrameOutOfRange(DomainError):
    """A test frame that is too small, or larger than the line promises to carry. In bytes, without FCS."""

    code = "line-test-frame-out-of-range"
    value: int
    minimum: int
    maximum: int
    field: str = "frame"


class ActivationTestTimeOutOfRange(DomainError):
    """A time for a test that is in the past, or too far in the future."""

    code = "line-test-time-out-of-range"
    earliest: datetime
    latest: datetime
    field: str = "at"


class ActivationTestIsScheduled(Conflict):
    """The line has a test scheduled already."""

    code = "line-test-is-scheduled"
    test: str
    at: datetime | None
    field: str = "at"


class WrongActivationTestState(Conflict):
    """A test that has begun is cancelled with its order. A test that has ended cannot be cancelled."""

    code = "wrong-line-test-state"
    state: str


class WrongOrderState(Conflict):
    """The order's state does not allow this action."""

    state: str
    action: str


class StaleRevision(Conflict):
    """The caller's decision is based on an older revision of the VLL."""

    expected: int
    current: int


class NothingToChange(DomainError):
    """The line already is as requested."""


class EndsSwapped(DomainError):
    """A change that only swaps the two ends: a line has no direction."""

    field = "a_end.port"


class StillBeingRemoved(Conflict):
    """This end would return to a router that has not confirmed the end's removal yet."""

    field: str
    router: str


class AlreadyRetried(Conflict):
    """A failed order can be retried once. A retry that was cancelled or rejected does not count.

    A retry that failed can be retried in turn.
    """

    order_id: str


class CoolingOffOutOfRange(DomainError):
    """A cooling-off period longer than the permitted maximum, in seconds."""

    value: int
    maximum: int
    field: str = "cooling_off"


class CoolingOffAlready(Conflict):
    """The line's removal is already ordered and waits for the end of its cooling-off period."""

    until: datetime
    field: str = "cooling_off"


class NotForYouToDecide(DomainError):
    """Only NOC staff approve and reject orders."""


class NotForYouToForce(DomainError):
    """Only NOC admins end orders without the routers' confirmation, and declare routers dead."""


class PlanIsIncomplete(Conflict):
    """A router did not report its plan."""

    routers: str
    field: str = "plan"


class GreKeysGone(Conflict):
    """The order's tunnel has a GRE key, but these routers' VPPs no longer both support keys."""

    a_router: str
    z_router: str
    field: str = "transport"


class TunnelAddressGone(Conflict):
    """The address that the order leased for its tunnel is no longer available on the router."""

    router: str
    address: str
    field: str


class PlanIsStale(Conflict):
    """The reviewed plan is not finished, or the lines of a router have changed since."""

    field = "plan"


class LinesAffected(Conflict):
    """The network would no longer carry these lines as they were sold.

    ``lines``: the names of the first few affected lines. ``count``: the number of all affected lines.
    """

    name: str
    lines: list[str]
    count: int
    field: str = "accept_affected"


class LoopbackInUse(Conflict):
    """Tunnels of lines end on the address that the change would remove from its router."""

    router: str
    address: str
    count: int
    example: str
    field: str


class UnderlayTableInUse(Conflict):
    """Tunnels of lines are in the router's underlay table, which the change would replace."""

    router: str
    table: int
    count: int
    example: str
    field: str = "underlay_table"


class FoundLineUnknown(DomainError):
    """The found line no longer exists: its router shows it differently, or it was adopted."""


class FoundLineOdd(DomainError):
    """The found line has oddities that prevent its adoption, because lines are adopted unchanged.

    ``odd``: a sentence for each oddity.
    """

    odd: str


class AdoptionsRefused(DomainError):
    """Some of the lines to adopt together are refused, so none is adopted.

    ``refusals``: one refusal for each refused line.
    """

    count: int
    refusals: tuple[DomainError, ...]


class FoundPortUnknown(DomainError):
    """An end of a found line is at an interface that is not a port yet. The portal cannot create the port,
    because its customer or speed is unknown.
    """

    router: str
    interface: str


class FoundPortOfAnother(DomainError):
    """An end of a found line is at a port that belongs to a customer other than the line's customer."""

    port: str
    owner: str
    customer: str


class RouterAdoptsNothing(DomainError):
    """The router's agent does not support adoption, or is away."""

    router: str


class LineNotHere(DomainError):
    """No line with that id or name ends on the router."""

    line: str
    router: str
    field: str = "line"


class LineAmbiguous(DomainError):
    """Several lines on the router have that name."""

    line: str
    ids: str
    field: str = "line"


class AdoptionWhileFrozen(Conflict):
    """Nothing is adopted on a frozen router: its configuration may change at any moment."""

    router: str


class ChangeWhileFrozen(Conflict):
    """One of the line's routers is frozen. The change would reach only the other router, and the line would
    carry nothing until the freeze ends.
    """

    router: str


class RouterCannotBeFrozen(DomainError):
    """The router's agent does not support a freeze, or has never reported."""

    router: str


class FreezeTooLong(DomainError):
    """A freeze must end in the future, within some days."""

    days: int
    field: str = "until"


class LineBeingTested(Conflict):
    """A line on the router is being tested. A frozen router would not reconnect it."""

    router: str
    line: str


class RouterIsNotFrozen(Conflict):
    """The router has no freeze that could be ended or reviewed."""

    router: str


class FreezeNotOver(Conflict):
    """The differences after a freeze can only be reviewed when the freeze has ended."""

    router: str


class RouterLetsNothingGo(DomainError):
    """The router's agent cannot stop managing a line and leave it unchanged."""

    router: str


class ReservationUnknown(DomainError):
    """The customer has no such reservation, or it has expired."""

    code = "hold-unknown"
    hold: str
    field: str = "hold"


class TooManyReservations(Conflict):
    """The customer already has the largest permitted number of reservations."""

    code = "too-many-holds"
    customer: str
    maximum: int


class ReservationRenewedOut(Conflict):
    """The reservation was already renewed as often as permitted."""

    code = "hold-renewed-out"
    maximum: int


class ConcurrentChange(Conflict):
    """Another process changed the row first; nothing was done."""
