"""A problem of the network or of the portal, as the functions in portal.alarms.derivation find it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from portal.alarms.kinds import Kind

# The name of an object that exists only once: the relay, the mail server, the agent API or NetBox.
PORTAL = "portal"


@dataclass(frozen=True, slots=True)
class Affected:
    """The lines that a cause affects, and their customers: two counts, and the first lines.

    ``first`` has an object ``{"line", "name", "customer"}`` for each of the first lines.
    """

    lines: int = 0
    customers: int = 0
    first: list[dict[str, str]] = field(default_factory=list)


NOBODY = Affected()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmCondition:
    """A current problem. Two conditions with the same ``kind`` and ``object`` are the same alarm.

    ``object`` identifies a row, for example ``router:7``; ``name`` is the object's name for a reader.
    ``facts`` are JSON values for the sentence (portal.alarms.sentences). ``since`` is None if the start is
    unknown.
    """

    kind: Kind
    object: str
    name: str
    since: datetime | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    routers: tuple[int, ...] = ()
    affected: Affected = NOBODY
