"""Forward link losses: shut down the port at one end of a line because the other end has lost its link.

At most one end is shut down at a time. The link state of that end is then unknown, so only the far end
decides. The decision changes only for a fact that has lasted for some time. While the facts stay the same, it
changes at most twice, even if a port that is set up again needs up to a minute for its link (ADR 46):

* While no end is shut down: if the link is lost at one end and up at the other end, the end with the link is
  shut down.
* While an end is shut down: the shutdown ends when the link of the far end is back. It also ends when the far
  end's router has been silent for longer than FORGOTTEN. Otherwise the end stays shut down, for example while
  the link of the far end is unknown.

The facts come from rows of the database only. Two runs at the same time do no harm.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.core.background_work import each_row
from portal.core.network.vlan_tags import Tagging
from portal.events.announcements import announce
from portal.inventory.models import FRESH, ObservedRouter, Port, RouterSilence
from portal.vll.convergence.requests import intents_renew
from portal.vll.models import ForwardedLinkLoss, Vll, VllEnd
from portal.vll.states import IN_SERVICE, AdminStatus, Handover, Lifecycle

# LONGEST_UP limits how long a flapping link must be up before the other port is set up again. If no end was
# shut down for the time CALM, the required time starts at the shortest value again.
LONGEST_UP = timedelta(minutes=5)
CALM = timedelta(hours=1)
# The time for a port to negotiate its link after it is set up. Only then does a missing link count as lost.
SETTLING = timedelta(seconds=60)
# If the far end's router is silent for this time, the port is set up: it must not stay down permanently.
FORGOTTEN = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a link must be lost (``down``) or back (``up``) before the decision changes."""

    down: timedelta
    up: timedelta

    def up_after(self, times: int) -> timedelta:
        """Return the required up time after this many forwarded losses in a row: it doubles each time."""
        doublings = min(max(times - 1, 0), 20)
        return max(self.up, min(self.up * (1 << doublings), LONGEST_UP))

    @property
    def longest_up(self) -> timedelta:
        return max(self.up, LONGEST_UP)


@dataclass(frozen=True, slots=True)
class EndLink:
    """The known state of an end's link.

    ``link_up`` None: unknown. It is unknown while the agent keeps the port shut and while the router is
    silent. ``since``: when that state began; None if it began before the portal recorded link states.
    ``router_dead``: the NOC has declared the router dead. ``silent_since``: since when the router has been
    silent although the portal listened.

    ``may_be_shut``: the router can shut the port down on request. ``verified_at``: when the router confirmed
    the end's present wanted state. For a resumed line, the router sets up the port at that time.
    """

    link_up: bool | None
    since: datetime | None
    router_dead: bool = False
    silent_since: datetime | None = None
    may_be_shut: bool = True
    verified_at: datetime | None = None

    def is_lost(self, timing: Timing, set_up_at: datetime | None, now: datetime) -> bool:
        if self.router_dead or self.link_up is not False:
            return self.router_dead
        after = max(timing.down, SETTLING) if self._may_settle(timing, set_up_at) else timing.down
        return self._lasts(after, now) and not self._may_come_yet(now)

    def _may_come_yet(self, now: datetime) -> bool:
        """Return whether the link may still come up after the end was verified.

        True if the end was verified less than SETTLING ago and the state of its link has not changed since.
        """
        if self.verified_at is None or now - self.verified_at >= SETTLING:
            return False
        return self.since is None or self.since <= self.verified_at

    def _may_settle(self, timing: Timing, set_up_at: datetime | None) -> bool:
        """Return whether the link may be missing only because the port was just set up again.

        True for a loss that began up to SETTLING after ``set_up_at``, or less than ``timing.down`` before it.
        """
        if set_up_at is None or self.since is None:
            return False
        return -timing.down < self.since - set_up_at <= SETTLING

    def is_back(self, after: timedelta, now: datetime) -> bool:
        return not self.router_dead and self.link_up is True and self._lasts(after, now)

    def is_forgotten(self, now: datetime) -> bool:
        return not self.router_dead and self.silent_since is not None and now - self.silent_since > FORGOTTEN

    def _lasts(self, at_least: timedelta, now: datetime) -> bool:
        return self.since is None or now - self.since >= at_least


def other(side: str) -> str:
    return "z" if side == "a" else "a"


def shut_side_next(
    shut_side: str,
    ends: Mapping[str, EndLink],
    *,
    times: int,
    set_up_at: datetime | None,
    timing: Timing,
    now: datetime,
) -> str:
    """Return the end that must be shut down: "a", "z" or "" for neither.

    ``times``: the number of shutdowns in a row. ``set_up_at``: when the last shut port was to be set up
    again; None: never. A loss that begins shortly before this time, or in the minute after it, counts only
    after a minute.
    """
    if shut_side:
        far = ends[other(shut_side)]
        ended = far.is_back(timing.up_after(times), now) or far.is_forgotten(now)
        return "" if ended else shut_side
    for side, end in ends.items():
        if end.link_up and end.may_be_shut and ends[other(side)].is_lost(timing, set_up_at, now):
            return side
    return ""


def times_next(times: int, *, turned_at: datetime, now: datetime) -> int:
    """Return the number of the next shutdown in a row. ``turned_at``: when the last shutdown ended."""
    return 1 if now - turned_at > CALM else times + 1


FORWARDED, FORWARDED_NO_LONGER = "vll.link_loss_forwarded", "vll.link_loss_over"
# Repeat a request after this time. The message may be lost, or arrive while the agent still answers an
# earlier message.
SEND_AGAIN_AFTER = timedelta(seconds=15)


def timing() -> Timing:
    return Timing(
        down=timedelta(seconds=settings.LONGLINE_LINK_LOSS_DOWN_S),
        up=timedelta(seconds=settings.LONGLINE_LINK_LOSS_UP_S),
    )


def forwards_link_loss(vll: Vll) -> bool:
    """Return whether the line forwards a loss now: it is active, not in a test, and not being handed over."""
    return (
        vll.link_loss_forwarding
        and vll.lifecycle == Lifecycle.ACTIVE
        and vll.admin_status == AdminStatus.UP
        and vll.handover == Handover.NONE
    )


def link_losses_forward(*, now: datetime) -> int:
    """Forward the loss or return of links, on all lines that need it. Return the number of changed lines.

    Each line that changes has its own transaction. The other lines are only read.
    """
    # Since when the portal has not received reports from silent routers, although it listened.
    silences = dict(RouterSilence.objects.filter(until__isnull=True).values_list("router_id", "since"))
    read = _with_ends(Vll.objects.filter(pk__in=_lines_to_check()).order_by("pk"))
    due = [vll.pk for vll in read if _line_state(vll, silences, now).is_due]
    return sum(each_row(due, lambda pk: _line_forward(pk, silences, now), what="forwarding a link loss"))


def _lines_to_check() -> set[UUID]:
    """Return the lines with a lost link, those that forward a loss, and those with a port shut down."""
    loss = Q(link_up=False) | Q(port__router__dead_since__isnull=False)
    lost = VllEnd.objects.filter(loss, vll=OuterRef("pk"))
    found = Vll.objects.filter(Exists(lost), link_loss_forwarding=True, lifecycle=Lifecycle.ACTIVE)
    turned = ForwardedLinkLoss.objects.exclude(shut_side="").values_list("vll", flat=True)
    kept = VllEnd.objects.filter(shut_down=True, vll__lifecycle__in=IN_SERVICE).values_list("vll", flat=True)
    return set(found.values_list("pk", flat=True)) | set(turned) | set(kept)


def _with_ends(lines: QuerySet[Vll]) -> QuerySet[Vll]:
    return lines.select_related("forwarded_link_loss").prefetch_related("ends__port__router__observed")


@dataclass(frozen=True, slots=True)
class _LineState:
    """The state of one line: the end that is shut down (``shut_side``) and the one that must be (``wanted``).

    ``row`` None: the line never forwarded a loss. ``unheeded``: the routers that have not followed the
    request although they report no conflict.
    """

    row: ForwardedLinkLoss | None
    ends: dict[str, VllEnd]
    shut_side: str
    wanted: str
    unheeded: list[int]

    @property
    def is_due(self) -> bool:
        return self.wanted != self.shut_side or bool(self.unheeded)


def _line_state(vll: Vll, silences: Mapping[int, datetime], now: datetime) -> _LineState:
    row: ForwardedLinkLoss | None = getattr(vll, "forwarded_link_loss", None)
    ends = {end.side: end for end in sorted(vll.ends.all(), key=lambda end: end.side)}
    shut_side, times = (row.shut_side, row.times) if row else ("", 0)
    wanted = ""
    if forwards_link_loss(vll):
        links = {side: _link(end, silences, kept=side == shut_side, now=now) for side, end in ends.items()}
        # The portal repeats its request until the router has set the port up. So the link may return at any
        # time after the newest request.
        set_up_at = row.sent_at if row else None
        wanted = shut_side_next(shut_side, links, times=times, set_up_at=set_up_at, timing=timing(), now=now)
    if wanted and not _can_be_shut(ends[wanted]):
        wanted = ""
    unheeded: list[int] = []
    if row is not None and wanted == shut_side and now - row.sent_at >= SEND_AGAIN_AFTER:
        otherwise = (end for side, end in ends.items() if end.shut_down != (side == shut_side))
        unheeded = [end.port.router_id for end in otherwise if end.status == VllEnd.Status.VERIFIED]
    return _LineState(row, ends, shut_side, wanted, unheeded)


@transaction.atomic
def _line_forward(pk: UUID, silences: Mapping[int, datetime], now: datetime) -> bool:
    """Change the end that is shut down, or repeat an unheeded request; return whether the end changed.

    The state is read again under the line's lock.
    """
    Vll.objects.locked().get(pk=pk)
    state = _line_state(_with_ends(Vll.objects.filter(pk=pk)).get(), silences, now)
    if state.wanted == state.shut_side:
        if state.unheeded:
            ForwardedLinkLoss.objects.filter(pk=pk).update(sent_at=now)
            intents_renew(state.unheeded)
        return False
    row = state.row or ForwardedLinkLoss(vll_id=pk, turned_at=now)
    if state.wanted:
        row.times = times_next(row.times, turned_at=row.turned_at, now=now)
    row.shut_side, row.turned_at, row.sent_at = state.wanted, now, now
    row.save()
    side = state.wanted or state.shut_side
    _announce(state.ends, side, FORWARDED if state.wanted else FORWARDED_NO_LONGER, now)
    intents_renew([state.ends[side].port.router_id])
    return True


def _link(end: VllEnd, silences: Mapping[int, datetime], *, kept: bool, now: datetime) -> EndLink:
    router, observed = end.port.router, getattr(end.port.router, "observed", None)
    reporting = observed is not None and now - observed.reported_at <= FRESH
    changeable = router.locked_since is None and router.frozen_since is None
    return EndLink(
        link_up=end.link_up if reporting and not kept and not end.shut_down else None,
        since=end.link_since,
        router_dead=router.dead_since is not None,
        silent_since=None if reporting else silences.get(router.pk),
        may_be_shut=changeable and _can_be_shut(end),
        verified_at=end.status_at if end.status == VllEnd.Status.VERIFIED else None,
    )


def _can_be_shut(end: VllEnd) -> bool:
    """Return whether the port may be shut down now. Conditions may have changed since the order."""
    observed: ObservedRouter | None = getattr(end.port.router, "observed", None)
    knows = observed is not None and observed.link_loss_forwarding
    return knows and end.port.kind == Port.Kind.UNI and end.tagging == Tagging.UNTAGGED


def _announce(ends: Mapping[str, VllEnd], side: str, kind: str, now: datetime) -> None:
    """Announce the decision. The router reports later that the port has followed it."""
    far, vll = ends[other(side)], ends[side].vll
    data: dict[str, Any] = {
        "end": side,
        "port": str(ends[side].port),
        "lost_at": str(far.port),
        "router_dead": far.port.router.dead_since is not None,
    }
    announce(kind, now=now, vll_id=vll.pk, customer_id=vll.customer_id, data=data)


def is_shut_down(vll: Vll, ends: Collection[VllEnd]) -> bool:
    """Return whether a port of the line is down because of the far end's link, or soon will be."""
    wanted = ForwardedLinkLoss.objects.filter(vll=vll).exclude(shut_side="").exists()
    return wanted or any(end.shut_down for end in ends)
