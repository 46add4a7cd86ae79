"""Link loss forwarding: which end of a line is kept down because the other one has lost its link. Pure.

At most one end is kept down at a time. Its link state is then unknown, so only the far end decides. Each
change requires a fact that has lasted for some time. With constant facts there are at most two changes, also
where a port that is set up again needs up to a minute for its link (ADR 46):

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

# The longest hold-down on a flapping link, and the rest time after which the hold-down is short again.
LONGEST_UP = timedelta(minutes=5)
CALM = timedelta(hours=1)
# The time that a port may need to negotiate its link after it is set up. Only later it counts as lost.
SETTLING = timedelta(seconds=60)
# If the far end's router has been silent for this time, the port is set up again. It must not stay down
# permanently.
FORGOTTEN = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a loss lasts before it is forwarded, and how long a link is up before that ends."""

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

    ``link_up`` None: unknown. It is unknown while the agent keeps the port down and while the router is
    silent. ``since``: the time of that state; None: it is older than this record. ``router_dead``: the NOC
    has declared the router dead. ``silent_since``: since when the router has been silent although the portal
    listened.

    ``may_be_held``: the router supports the request. ``verified_at``: when the router confirmed the end's
    present wanted state, which sets up the port of a resumed line.
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
        """Return whether the end was verified recently and has had no link since. It may come up yet."""
        if self.verified_at is None or now - self.verified_at >= SETTLING:
            return False
        return self.since is None or self.since <= self.verified_at

    def _may_settle(self, timing: Timing, set_up_at: datetime | None) -> bool:
        """Return whether its port may just have been set up and not have its link yet.

        An earlier loss does not count.
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


def held_next(
    held: str,
    ends: Mapping[str, EndLink],
    *,
    times: int,
    set_up_at: datetime | None,
    timing: Timing,
    now: datetime,
) -> str:
    """Return the end that must be kept down: "a", "z" or "" for neither.

    ``times``: the number of hold-downs in a row. ``set_up_at``: when the last held port was to be set up
    again; None: never. A link that is lost from then on, or within a minute afterwards, must be lost for a
    minute.
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
    """Return the number of the next hold-down in a row, for an end that was last set up at ``turned_at``."""
    return 1 if now - turned_at > CALM else times + 1
