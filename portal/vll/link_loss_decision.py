"""Link loss forwarding: decide which end of a line is shut down because the other end has lost its link.

At most one end is shut down at a time. The link state of that end is then unknown, so only the far end
decides. The decision changes only for a fact that has lasted for some time. While the facts stay the same, it
changes at most twice, even if a port that is set up again needs up to a minute for its link (ADR 46):

* While no end is shut down: if the link is lost at one end and up at the other end, the end with the link is
  shut down.
* While an end is shut down: the shutdown ends when the link of the far end is back. It also ends when the far
  end's router has been silent for longer than FORGOTTEN. Otherwise the end stays shut down, for example while
  the link of the far end is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

# LONGEST_UP limits how long a flapping link must be up before the other port is set up again. If no end was
# shut down for the time CALM, the required time starts at the shortest value again.
LONGEST_UP = timedelta(minutes=5)
CALM = timedelta(hours=1)
# The time that a port may need to negotiate its link after it is set up. A missing link counts as lost only
# after this time.
SETTLING = timedelta(seconds=60)
# If the far end's router has been silent for this time, the port is set up again. It must not stay down
# permanently.
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

        True for a loss that began at most SETTLING after ``set_up_at``, or less than ``timing.down`` before
        it.
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
