"""Multihop BFD (RFC 5883) on the paths between tunnel endpoints: how it is set, and how a path stands."""

from collections.abc import Iterable
from enum import StrEnum
from re import fullmatch
from typing import NamedTuple, Self

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

# What agents accept (agent/internal/intent/decode.go).
_INTERVAL_MS = range(50, 10_001)
_MULTIPLIER = range(2, 51)
OFF = "off"


class PathWatch(NamedTuple):
    """A packet each ``interval_ms``; without ``multiplier`` of them a path is down (RFC 5880)."""

    interval_ms: int
    multiplier: int

    @classmethod
    def read(cls, written: str) -> Self | None:
        """The setting LONGLINE_PATH_WATCH, like ``300x3``; None for ``off``. Raises ImproperlyConfigured."""
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
    """How a path stands, as one router's agent tells it (docs/reference/agent-reports.md)."""

    UP = "up"
    # It was up, and is not any more.
    DOWN = "down"
    STARTING = "starting"
    # Its session has been there for a while and never was up.
    UNHEARD = "unheard"
    # Somebody has shut a session that is not the agent's.
    SHUT = "shut"
    REFUSED = "refused"


# The router has a session that works. Only where both do, one that hears nothing says something of the path.
LISTENING = frozenset({PathState.UP, PathState.DOWN, PathState.STARTING, PathState.UNHEARD})


def is_path_down(states: Iterable[str]) -> bool:
    """Whether a path is down, by what the routers at its two ends say of it; "": one does not watch it."""
    said = set(states)
    return PathState.DOWN in said and said <= LISTENING


def wanted_watch(can_watch: bool) -> PathWatch | None:
    """How a router that can, or cannot, is to watch the paths of its lines."""
    watch: PathWatch | None = settings.LONGLINE_PATH_WATCH
    return watch if can_watch else None
