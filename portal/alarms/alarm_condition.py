"""A problem of the network or the portal, as the derivations find it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from portal.alarms.kinds import Kind

# The name of objects that exist once: the relay, the mail server, the agent API, NetBox.
PORTAL = "portal"


@dataclass(frozen=True, slots=True)
class Affected:
    """The lines behind a cause and their customers: counts, and the first lines as ``{"line", "name",
    "customer"}``.
    """

    lines: int = 0
    customers: int = 0
    first: list[dict[str, str]] = field(default_factory=list)


NOBODY = Affected()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmCondition:
    """A current problem. Two with the same ``kind`` and ``object`` are the same alarm.

    ``object`` names a row, as ``router:7``; ``name`` is its name for a reader. ``facts`` are JSON values for
    the sentence (portal.alarms.sentences). ``since`` is None if the start is unknown.
    """

    kind: Kind
    object: str
    name: str
    since: datetime | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    routers: tuple[int, ...] = ()
    affected: Affected = NOBODY
