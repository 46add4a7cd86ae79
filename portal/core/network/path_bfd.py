"""Multihop BFD (RFC 5883) on the paths between tunnel endpoints: settings, and the state of a path."""

from collections.abc import Iterable
from enum import StrEnum
from re import fullmatch
from typing import NamedTuple, Self

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

# The limits of agents (agent/internal/intent/decode.go).
_INTERVAL_MS = range(50, 10_001)
_MULTIPLIER = range(2, 51)
OFF = "off"


class PathWatch(NamedTuple):
    """BFD settings (RFC 5880).

    A router sends a packet every ``interval_ms``. A path is down after ``multiplier`` missing packets in a
    row.
    """

    interval_ms: int
    multiplier: int

    @classmethod
    def read(cls, written: str) -> Self | None:
        """Read the setting LONGLINE_PATH_WATCH, such as ``300x3``. Return None for ``off``.

        Raises ImproperlyConfigured.
        """
        if written == OFF:
            return None
        found = fullmatch(r"(\d{1,9})x(\d{1,9})", written)
        if found is not None:
            watch = cls(int(found[1]), int(found[2]))
            if watch.interval_ms in _INTERVAL_MS and watch.multiplier in _MULTIPLIER:
                return watch
        raise ImproperlyConfigured(
            f"LONGLINE_PATH_WATCH is {written!r}: write {OFF}, or milliseconds between packets "
            f"({_INTERVAL_MS[0]} to {_INTERVAL_MS[-1]}) and how many may be missing "
            f"({_MULTIPLIER[0]} to {_MULTIPLIER[-1]}), such as 300x3"
        )


class PathState(StrEnum):
    """The state of a path, as the agent of one router reports it (docs/reference/agent-reports.md)."""

    UP = "up"
    # The session was up, and is now down.
    DOWN = "down"
    STARTING = "starting"
    # The session has existed for some time and was never up.
    UNHEARD = "unheard"
    # The session does not belong to the agent, and an operator has shut it.
    SHUT = "shut"
    REFUSED = "refused"


# The states of a session that receives packets if the path works. Missing packets show a fault of the path
# only if both routers have a session in one of these states.
LISTENING = frozenset({PathState.UP, PathState.DOWN, PathState.STARTING, PathState.UNHEARD})


def is_path_down(states: Iterable[str]) -> bool:
    """Return whether a path is down.

    ``states``: the states that the two routers of the path report; "" for a router without a session.
    """
    reported = set(states)
    return PathState.DOWN in reported and reported <= LISTENING


def wanted_watch(can_watch: bool) -> PathWatch | None:
    """Return the BFD settings for a router; None if path watch is off or the router cannot watch paths."""
    watch: PathWatch | None = settings.LONGLINE_PATH_WATCH
    return watch if can_watch else None
