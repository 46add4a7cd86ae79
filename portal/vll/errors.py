"""Refusals of orders: types with facts, worded by ``portal.vll.error_messages``.

Sizes in bytes, rates in bit/s.
"""

from datetime import datetime

from portal.allocation.errors import VlanTaken
from portal.core.errors import Conflict, DomainError


class PortUnknown(DomainError):
    """No such port, or one that this user may not see: a stranger cannot tell which."""

    field: str
    port: int


class VlanCoolingOff(VlanTaken):
    """A removed line of the same customer still has the frames that were requested.

    ``line`` is its id. It keeps them until ``until``, so that the removal can be undone; ``free_now`` is the
    API's request that ends this at once. Both are null if its removal is under way and ends automatically.
    """

    line: str
    description: str
    until: datetime | None
    free_now: str | None


class SimilarOrder(Conflict):
    """The customer ordered the same within the last hour; a page asks before it orders another one.

    ``order``: the newest of these orders, ``count`` of them.
    """

    order: str
    count: int


class NotAllowedToOrder(DomainError):
    """The user sees the customer but may not order for it."""

    customer: str


class PortsOfTwoCustomers(DomainError):
    """A VLL joins ports of one customer."""

    a_port: str
    z_port: str
    field: str = "z_end.port"


class PortHasNoCustomer(DomainError):
    """The port is not assigned to anybody yet."""

    field: str
    port: str


class PortOfAnotherCustomer(DomainError):
    """A line stays with its customer: its ends can move to that customer's ports only."""

    field: str
    port: str
    customer: str


class EndsAreTheSame(DomainError):
    """Both ends pick the same frames of the same port."""

    port: str
    field: str = "z_end"


class CirOutOfRange(DomainError):
    """A committed information rate outside what any port could carry, in bit/s."""

    value: int
    minimum: int
    maximum: int
    field: str = "cir_bps"


class EirOutOfRange(DomainError):
    """An excess information rate outside what any port could carry, in bit/s."""

    value: int
    minimum: int
    maximum: int
    field: str = "eir_bps"


class PeakAbovePort(DomainError):
    """CIR and EIR together are faster than the port itself, in bit/s."""

    port: str
    peak_bps: int
    speed_bps: int
    field: str = "eir_bps"


class BurstOutOfRange(DomainError):
    """A burst size that would not hold the line's largest frame, or that no policer counts to; bytes."""

    field: str
    value: int
    minimum: int
    maximum: int


class ExcessBurstWithoutRate(DomainError):
    """An EBS for a line that has no EIR: nothing would fill that bucket."""

    value: int
    field: str = "ebs_bytes"


class LinkLossNeedsWholePorts(DomainError):
    """Link loss forwarding for a line that shares a port, whose other users would go down. ``side``: A, Z."""

    field: str
    side: str


class LinkLossNeedsUni(DomainError):
    """Link loss forwarding at a port towards another operator."""

    field: str
    port: str


class LinkLossUnsupported(DomainError):
    """Link loss forwarding on a router whose agent does not know it."""

    field: str
    router: str


class LinkLossPortInUse(DomainError):
    """Link loss forwarding at a port that somebody else uses too, by what its router reports."""

    field: str
    port: str
    interface: str


class PortKeptDown(Conflict):
    """A line that is to be let go of while one of its ports is kept down because of the far end's link."""


class RouterHasNoAgent(DomainError):
    """The port's router carries traffic but cannot end VLLs."""

    field: str
    router: str


class RouterInMaintenance(Conflict):
    """The NOC works on the router: it takes no new lines until that is over."""

    field: str
    router: str


class RouterIsDrained(Conflict):
    """A drained router stays under maintenance until the drain ends."""

    router: str


class RouterIsDead(Conflict):
    """A router that was declared dead stays under maintenance until that is taken back."""

    router: str


class FrameTooLargeForPort(DomainError):
    """The frame on the UNI's wire, tags included, is larger than the port takes. In bytes."""

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
    """Both ends of the line are on one router: there is nothing between them to test."""


class RouterSendsNoTestFrames(Conflict):
    """A line is tested by the routers of its ends, and these cannot."""

    routers: str


class RouterDoesNotAnswer(Conflict):
    """A test takes the line apart and joins it again within seconds; these routers would not follow."""

    routers: str


class LineTestFrameOutOfRange(DomainError):
    """A test frame that the line does not promise to carry, in bytes without FCS."""

    value: int
    minimum: int
    maximum: int
    field: str = "frame"


class LineTestTimeOutOfRange(DomainError):
    """A time for a test that is over, or too far ahead."""

    earliest: datetime
    latest: datetime
    field: str = "at"


class LineTestIsScheduled(Conflict):
    """The line has a test scheduled already."""

    test: str
    at: datetime | None
    field: str = "at"


class WrongLineTestState(Conflict):
    """A test that has begun is called off with its order, and one that has ended not at all."""

    state: str


class WrongOrderState(Conflict):
    """The order's state does not allow this action."""

    state: str
    action: str


class StaleRevision(Conflict):
    """The caller decided by an older revision of the VLL than the one that it has now."""

    expected: int
    current: int


class NothingToChange(DomainError):
    """The line is already as it is asked to become."""


class EndsSwapped(DomainError):
    """A change that only lets the two ends change places: a line has no direction."""

    field = "a_end.port"


class StillBeingRemoved(Conflict):
    """The router that this end would return to has not confirmed yet that it is gone from there."""

    field: str
    router: str


class AlreadyRetried(Conflict):
    """A failed order is retried once, unless that was called off; a retry can be retried in turn."""

    order_id: str


class CoolingOffOutOfRange(DomainError):
    """A cooling-off longer than can be promised, in seconds."""

    value: int
    maximum: int
    field: str = "cooling_off"


class CoolingOffAlready(Conflict):
    """The line's removal is ordered already, and waits for the end of its cooling-off."""

    until: datetime
    field: str = "cooling_off"


class NotForYouToDecide(DomainError):
    """Only NOC staff approve and reject orders."""


class NotForYouToForce(DomainError):
    """Only NOC admins end orders without the routers' word, and declare routers dead."""


class PlanIsIncomplete(Conflict):
    """A router did not say what it would do."""

    routers: str
    field: str = "plan"


class GreKeysGone(Conflict):
    """A held order's tunnel has a GRE key, and these routers' VPPs no longer both have keys."""

    a_router: str
    z_router: str
    field: str = "transport"


class TunnelAddressGone(Conflict):
    """The address that a held order was given for its tunnel is no longer to be had on the router."""

    router: str
    address: str
    field: str


class PlanIsStale(Conflict):
    """The plan that was looked at is not made yet, or a router was told something else since."""

    field = "plan"


class LinesAffected(Conflict):
    """The network would no longer carry these lines as they were sold: the first few, and how many."""

    name: str
    lines: list[str]
    count: int
    field: str = "accept_affected"


class LoopbackInUse(Conflict):
    """Tunnels of lines end on the address, which is to go from its router."""

    router: str
    address: str
    count: int
    example: str
    field: str


class UnderlayTableInUse(Conflict):
    """Tunnels of lines are in the router's underlay table, which is to become another."""

    router: str
    table: int
    count: int
    example: str
    field: str = "underlay_table"


class FoundLineUnknown(DomainError):
    """No such found line any more: its routers show it otherwise, or it was adopted."""


class FoundLineOdd(DomainError):
    """A line is adopted as it is, so nothing about it may be odd. ``odd``: sentences."""

    odd: str


class AdoptionsRefused(DomainError):
    """Of lines that were to be taken over together some are refused, and so none is. ``refusals``: each."""

    count: int
    refusals: tuple[DomainError, ...]


class FoundPortUnknown(DomainError):
    """An end of a found line is at an interface that is no port, and no customer or no speed is known."""

    router: str
    interface: str


class FoundPortOfAnother(DomainError):
    """An end of a found line is at a port of another customer than the line is to be of."""

    port: str
    owner: str
    customer: str


class RouterAdoptsNothing(DomainError):
    """The router's agent has not said that it takes over what others made, or is away."""

    router: str


class LineNotHere(DomainError):
    """No line of that id or name ends on the router."""

    line: str
    router: str
    field: str = "line"


class LineAmbiguous(DomainError):
    """Several lines on the router have that name."""

    line: str
    ids: str
    field: str = "line"


class AdoptionWhileFrozen(Conflict):
    """Nothing is adopted on a router that is frozen: what it shows may be changed at any moment."""

    router: str


class ChangeWhileFrozen(Conflict):
    """Only one of two routers would be changed: the line would carry nothing until the freeze ends."""

    router: str


class RouterCannotBeFrozen(DomainError):
    """The router's agent does not know how to leave VPP alone, or has never reported."""

    router: str


class FreezeTooLong(DomainError):
    """A freeze ends after now, and within some days."""

    days: int
    field: str = "until"


class LineBeingTested(Conflict):
    """Frozen now, the router would keep the line cut in two for test frames."""

    router: str
    line: str


class RouterIsNotFrozen(Conflict):
    """There is no freeze that could be ended or looked at here."""

    router: str


class FreezeNotOver(Conflict):
    """What a freeze left is looked at when it has ended."""

    router: str


class RouterLetsNothingGo(DomainError):
    """The router's agent does not know how to let a line go as it is."""

    router: str


class HoldUnknown(DomainError):
    """No such hold of this customer, or it has expired."""

    hold: str
    field: str = "hold"


class TooManyHolds(Conflict):
    """The customer has as many holds open as it may."""

    customer: str
    maximum: int


class HoldRenewedOut(Conflict):
    """The hold was renewed as often as it may be."""

    maximum: int


class ConcurrentChange(Conflict):
    """Somebody else changed the row first; nothing was done."""
