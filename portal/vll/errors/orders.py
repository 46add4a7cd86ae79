"""Errors of orders, plans, reservations and activation tests."""

from datetime import datetime

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError


class SimilarOrder(Conflict):
    """The customer ordered an equal line within the last hour. Before a page sends the order again, it asks
    the user.

    ``order``: the id of the newest equal order. ``count``: the number of equal orders.
    """

    text = _(
        "The same line was ordered within the last hour (order {order}). Order another one only if you "
        "want a second line."
    )
    order: str
    count: int


class OrderIsOpen(Conflict):
    """The VLL has an order under way."""

    text = _("Order {order_id} ({action}) is still {state}. Wait until it has finished, or cancel it.")
    order_id: str
    action: str
    state: str


class WrongLifecycle(Conflict):
    """The VLL's life cycle does not allow this action."""

    text = _(
        "This line is {lifecycle}, so {action} is not possible. Look at the line again to see the possible "
        "actions."
    )
    lifecycle: str
    action: str


class LineHasNoTunnel(Conflict):
    """Both ends of the line are on one router, so there is no tunnel to test."""

    text = _("Both ends of this line are on one router, so there is no tunnel to send test frames through.")


class RouterSendsNoTestFrames(Conflict):
    """The routers at the line's ends have to send the test frames, but these routers cannot."""

    text = _("{routers} cannot send test frames, so nothing was done. Ask the NOC to upgrade.")
    routers: str


class RouterDoesNotAnswer(Conflict):
    """These routers do not respond, but a test must disconnect and reconnect the line within seconds."""

    text = _(
        "{routers} would not respond within seconds, so the line might stay interrupted; nothing was "
        "done. Try again later, or ask the NOC."
    )
    routers: str


class ActivationTestFrameOutOfRange(DomainError):
    """A test frame that is too small, or larger than the line promises to carry. In bytes, without FCS."""

    code = "line-test-frame-out-of-range"
    text = _(
        "This line carries frames of {minimum} to {maximum} bytes, so frames of {value} cannot be "
        "sent. Enter a size in that range, or leave it out."
    )
    value: int
    minimum: int
    maximum: int
    field: str = "frame"


class ActivationTestTimeOutOfRange(DomainError):
    """A time for a test that is in the past, or too far in the future."""

    code = "line-test-time-out-of-range"
    text = _("A test can be scheduled from now until {latest}. Choose a time in between.")
    earliest: datetime
    latest: datetime
    field: str = "at"


class ActivationTestIsScheduled(Conflict):
    """The line has a test scheduled already."""

    code = "line-test-is-scheduled"
    text = _("A test of this line is already scheduled for {at}. Cancel that test first.")
    test: str
    at: datetime | None
    field: str = "at"


class WrongActivationTestState(Conflict):
    """A test that has begun is cancelled with its order. A test that has ended cannot be cancelled."""

    code = "wrong-line-test-state"
    text = _(
        "This test is {state}: only a scheduled test can be cancelled here. To stop a running test,"
        " cancel its order."
    )
    state: str


class WrongOrderState(Conflict):
    """The order's state does not allow this action."""

    text = _("This order is {state}, so {action} is not possible. Read it again.")
    state: str
    action: str


class StaleRevision(Conflict):
    """The caller's decision is based on an older revision of the VLL."""

    text = _(
        "This line has changed: it is at revision {current}, but your change was made for {expected}."
        " Read it again, then retry."
    )
    expected: int
    current: int


class AlreadyRetried(Conflict):
    """A failed order can be retried once. A retry that was cancelled or rejected does not count.

    A retry that failed can be retried in turn.
    """

    text = _(
        "This order was already retried as order {order_id}. If that order failed too, retry that order "
        "instead."
    )
    order_id: str


class CoolingOffOutOfRange(DomainError):
    """A cooling-off period longer than the permitted maximum, in seconds."""

    text = _("A cooling-off of {value} s is not possible. Choose 0 to {maximum} s.")
    value: int
    maximum: int
    field: str = "cooling_off"


class CoolingOffAlready(Conflict):
    """The line's removal is already ordered and waits for the end of its cooling-off period."""

    text = _(
        "This line is already stopped and will be removed at {until}. Undo that, or remove it without "
        "a cooling-off."
    )
    until: datetime
    field: str = "cooling_off"


class NotForYouToDecide(DomainError):
    """Only NOC staff approve and reject orders."""

    text = _("Only the NOC can approve or reject orders. Wait for its decision.")


class NotForYouToForce(DomainError):
    """Only NOC admins end orders without the routers' confirmation, and declare routers dead."""

    status = 403
    text = _(
        "Only NOC admins can end an order without the routers' confirmation or declare a router dead. Ask "
        "one of them."
    )


class PlanIsIncomplete(Conflict):
    """A router did not report its plan."""

    text = _(
        "{routers} sent no plan, so this plan cannot be approved. Nothing was done. Ask for a new plan "
        "when all routers respond."
    )
    routers: str
    field: str = "plan"


class GreKeysGone(Conflict):
    """The order's tunnel has a GRE key, but these routers' VPPs no longer both support keys."""

    text = _(
        "This order's tunnel was to have a GRE key, but the VPPs of {a_router} and {z_router} no longer "
        "both support keys. Install VPPs that support keys, or reject the order: a new order gets a pair "
        "of addresses."
    )
    a_router: str
    z_router: str
    field: str = "transport"


class TunnelAddressGone(Conflict):
    """The address that the order leased for its tunnel is no longer available on the router."""

    text = _(
        "This order's tunnel was to end on {address}, which {router} no longer has. Give the router "
        "that address again, or reject the order: a new order gets another address."
    )
    router: str
    address: str
    field: str


class PlanIsStale(Conflict):
    """The reviewed plan is not finished, or the lines of a router have changed since."""

    text = _(
        "A router has changed since this plan was made, or the plan is not ready yet; nothing was "
        "done. Look at a new plan, then approve it."
    )
    field = "plan"


class ReservationUnknown(DomainError):
    """The customer has no such reservation, or it has expired."""

    code = "hold-unknown"
    text = _("There is no reservation {hold}, or it has expired. Order without it, or create a new one.")
    hold: str
    field: str = "hold"


class TooManyReservations(Conflict):
    """The customer already has the largest permitted number of reservations."""

    code = "too-many-holds"
    text = _(
        "{customer} has {maximum} open reservations, which is the limit. Order with one of them, or release"
        " one."
    )
    customer: str
    maximum: int


class ReservationRenewedOut(Conflict):
    """The reservation was already renewed as often as permitted."""

    code = "hold-renewed-out"
    text = _(
        "This reservation has been renewed {maximum} times, which is the limit. Order before it expires."
    )
    maximum: int


class ConcurrentChange(Conflict):
    """Another process changed the row first; nothing was done."""

    text = _("Somebody else changed this at the same moment; nothing was done. Read it again, then retry.")
