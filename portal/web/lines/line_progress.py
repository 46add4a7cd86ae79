"""The progress of a VLL: its newest order, and the state of each end compared with the ordered state."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from portal.events.models import Event
from portal.inventory.models import FRESH
from portal.inventory.queries import Text
from portal.vll import queries
from portal.vll.models import Order, Vll, VllEnd
from portal.vll.sentences import maintenance_notice, router_reason_sentence, unpoliced, unpoliced_text
from portal.vll.states import (
    CALLED_OFF,
    TERMINAL_LIFECYCLES,
    TERMINAL_ORDER_STATES,
    AdminStatus,
    Handover,
    Lifecycle,
    OperStatus,
    OrderAction,
    OrderState,
)
from portal.web.page.badges import END_LOOKS, end_look

# For this time after the end of an order, the page waits for the oper status. Agents report every 10 s.
OPER_STATUS_FOLLOWS = timedelta(seconds=30)
# For this time after an order's last change, the page polls often. Reachable routers confirm an order within
# one or two seconds.
STEPS_FOLLOW = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class EndStep:
    """The state of one end, for display.

    * ``note``: the reason why the end is not ready, or "".
    * ``agent_words``: the agent's message about the end, for the NOC.
    * ``carries``: False if the line is suspended as ordered.
    * ``reporting``: whether the router reports now, so that this state is current.
    """

    end: VllEnd
    label: Text
    tone: str
    note: str = ""
    carries: bool = True
    reporting: bool = True
    agent_words: str = ""

    @property
    def unpoliced(self) -> str:
        """The reason why the end is not policed, or ""."""
        why = unpoliced(self.end)
        return "" if why is None else unpoliced_text(self.end, why)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a line.

    ``settled``: whether no change is expected soon. If False, the page polls every ``poll_every``.
    ``actions``: the possible actions: change, test, suspend, resume, remove, restore, cancel, retry.
    """

    order: Order | None
    ends: list[EndStep]
    events: list[Event]
    settled: bool
    poll_every: str
    actions: frozenset[str]


def progress_of(vll: Vll, *, now: datetime) -> Progress:
    """Return the progress of ``vll``. The caller must read ``vll`` with ``queries.with_last_order``."""
    order = vll.orders.order_by("-ordered_at", "-id").first()
    return Progress(
        order=order,
        ends=[_as_last_reported(_step(end, vll, order), now) for end in vll.ends.all()],
        events=queries.timeline(vll.pk),
        settled=_all_is_read(vll, order) and _settled(vll, order, now),
        poll_every=_poll_every(order, now),
        actions=actions_of(vll, order),
    )


def _step(end: VllEnd, vll: Vll, order: Order | None) -> EndStep:
    if vll.lifecycle in TERMINAL_LIFECYCLES and end.status == VllEnd.Status.UNANSWERED:
        return EndStep(end, _("Never built"), "muted")
    if (
        order is not None
        and order.state == OrderState.PENDING_APPROVAL
        and end.status == VllEnd.Status.UNANSWERED
    ):
        return EndStep(end, *END_LOOKS[VllEnd.Status.UNANSWERED])
    if end.status_revision != vll.revision or end.status == VllEnd.Status.UNANSWERED:
        waiting = _("Waiting for %(router)s") % {"router": end.port.router.name}
        why = maintenance_notice(end.port.router)
        return EndStep(end, waiting, "warning" if why else "info", note=why["message"] if why else "")
    if end.is_as_ordered and vll.admin_status == AdminStatus.DOWN:
        return EndStep(end, _("Stopped"), "muted", carries=False)
    label, tone = end_look(end)
    return EndStep(
        end=end,
        label=label,
        tone=tone,
        note=router_reason_sentence(end.reason, router=end.port.router.name),
        agent_words=_agent_words(end.reason),
    )


def _as_last_reported(step: EndStep, now: datetime) -> EndStep:
    """Return ``step``.

    If its router does not report or is not connected to VPP, a green badge becomes grey.
    """
    seen = getattr(step.end.port.router, "observed", None)
    if seen is None or seen.is_current(reported_since=now - FRESH):
        return step
    return replace(step, reporting=False, tone="muted" if step.tone == "success" else step.tone)


def _agent_words(reason: dict[str, Any] | None) -> str:
    """Return the agent's message in ``reason``, with the object that it concerns."""
    if not reason:
        return ""
    message = str(reason.get("message") or reason.get("code") or "")
    about = reason.get("object")
    return f"{message} ({about})" if about and str(about) not in message else message


def _poll_every(order: Order | None, now: datetime) -> str:
    """Return the polling interval in htmx's notation.

    After a change of the order, the interval is half a second. It is longer if the order waits for people, or
    has not changed for some time.
    """
    if order is None or order.state == OrderState.PENDING_APPROVAL:
        return "10s"
    return "500ms" if now - order.state_at < STEPS_FOLLOW else "5s"


def _all_is_read(vll: Any, order: Order | None) -> bool:
    """Return whether ``vll`` already shows the result of its newest order, if that order has ended.

    The line is read before the order. If the order ends between these two queries, ``order`` has ended, but
    ``vll`` still has the state before the end.
    """
    return order is None or vll.last_order_state in TERMINAL_ORDER_STATES


def _settled(vll: Vll, order: Order | None, now: datetime) -> bool:
    if order is not None and not order.is_terminal:
        return False
    waits_for_oper_status = (
        vll.lifecycle == Lifecycle.ACTIVE
        and vll.oper_status != OperStatus.UP
        and order is not None
        and now - order.state_at < OPER_STATUS_FOLLOWS
    )
    return not waits_for_oper_status


def actions_of(vll: Vll, order: Order | None) -> frozenset[str]:
    """Return the possible actions on a line (see ``Progress.actions``). ``order``: its newest order."""
    if order is not None and not order.is_terminal:
        letting_go = vll.handover == Handover.RELEASE
        ending = order.state == OrderState.PENDING_CANCELLATION or order.failure or letting_go
        return frozenset() if ending else frozenset({"cancel"})
    test = {"test"} if vll.family is not None else set()
    # If an adoption fails, the line becomes a found line again, and is handled as a released line.
    lost = vll.handover == Handover.RELEASE
    again = {"retry"} if order is not None and not lost and _may_be_retried(order) else set()
    match vll.lifecycle:
        case Lifecycle.ACTIVE:
            return frozenset({"change", "suspend", "remove"} | test | again)
        case Lifecycle.SUSPENDED:
            return frozenset({"change", "resume", "remove"} | test | again)
        case Lifecycle.PENDING_TERMINATE if vll.wanted_present:
            return frozenset({"restore", "remove"} | again)
        case _:
            return frozenset(again)


def _may_be_retried(order: Order) -> bool:
    removal = order.action == OrderAction.DELETE
    retried = order.retries.exclude(state__in=CALLED_OFF).exists()
    return order.state == OrderState.FAILED and not removal and not retried
