"""Link loss forwarding: which end of a line is kept down because the other one has lost its link. Pure.

At most one end is kept down at a time. What its own link does is not seen then, so it counts for nothing, and
the far end alone decides. Each turn takes a fact that has lasted, so with facts that stay as they are there
are at most two, also where a port that is set up again takes up to a minute to have its link (ADR 46):

==========  ========================================  ==========
held        its far end                               becomes
==========  ========================================  ==========
neither     lost, and the end itself has a link       that end
neither     anything else                             neither
an end      back, or forgotten                        neither
an end      anything else, such as unknown            that end
==========  ========================================  ==========
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

# How long a hold-down may grow by a link that flaps, and after which rest it is short again.
LONGEST_UP = timedelta(minutes=5)
CALM = timedelta(hours=1)
# A port that is set up again may take so long to negotiate its link before it counts as lost.
SETTLING = timedelta(seconds=60)
# A port is not kept down for ever because of a router of which nobody hears: after that it is set up again.
FORGOTTEN = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a loss has to last before it is forwarded, and a link to be back before that ends."""

    down: timedelta
    up: timedelta

    def up_after(self, times: int) -> timedelta:
        """The second of these when it is forwarded for that many times in a row: twice as long each time."""
        doublings = min(max(times - 1, 0), 20)
        return max(self.up, min(self.up * (1 << doublings), LONGEST_UP))

    @property
    def longest_up(self) -> timedelta:
        return max(self.up, LONGEST_UP)


@dataclass(frozen=True, slots=True)
class EndLink:
    """What is known of an end's link now.

    ``link_up`` None: unknown, and so while the agent keeps the port down or nobody hears from its router;
    ``since``: of that link, None for before that was noted. ``router_dead``: the NOC has declared the router
    dead. ``silent_since``: since when nobody has heard from it although the portal listened.
    ``may_be_held``: that router can be told. ``verified_at``: when it said that the end is as it is wanted by
    now, by which the port of a line that is resumed is set up.
    """

    link_up: bool | None
    since: datetime | None
    router_dead: bool = False
    silent_since: datetime | None = None
    may_be_held: bool = True
    verified_at: datetime | None = None

    def is_lost(self, timing: Timing, set_up_at: datetime | None, now: datetime) -> bool:
        if self.router_dead or self.link_up is not False:
            return self.router_dead
        after = max(timing.down, SETTLING) if self._may_settle(timing, set_up_at) else timing.down
        return self._lasts(after, now) and not self._may_come_yet(now)

    def _may_come_yet(self, now: datetime) -> bool:
        """Whether the end was verified lately and has had no link since: it may have been shut before."""
        if self.verified_at is None or now - self.verified_at >= SETTLING:
            return False
        return self.since is None or self.since <= self.verified_at

    def _may_settle(self, timing: Timing, set_up_at: datetime | None) -> bool:
        """Whether its port may just have been set up and have no link yet; not if that was lost before."""
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


def held_next(
    held: str,
    ends: Mapping[str, EndLink],
    *,
    times: int,
    set_up_at: datetime | None,
    timing: Timing,
    now: datetime,
) -> str:
    """The end that is to be kept down: "a", "z" or "" for neither.

    ``times``: how often in a row one was. ``set_up_at``: when the last one was to be set up again, None for
    never; a link that is lost from then on, or within a minute of it, has to be so for a minute.
    """
    if held:
        far = ends[other(held)]
        ended = far.is_back(timing.up_after(times), now) or far.is_forgotten(now)
        return "" if ended else held
    for side, end in ends.items():
        if end.link_up and end.may_be_held and ends[other(side)].is_lost(timing, set_up_at, now):
            return side
    return ""


def times_next(times: int, *, turned_at: datetime, now: datetime) -> int:
    """The number of this time in a row, when an end is to be kept down again that was last set up then."""
    return 1 if now - turned_at > CALM else times + 1
