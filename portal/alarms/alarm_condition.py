"""What a look at the network finds wrong."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from portal.alarms.kinds import Kind

# The name of something that there is once: the relay, the mail server, the agent API, NetBox.
PORTAL = "portal"


@dataclass(frozen=True, slots=True)
class Affected:
    """The lines behind a cause and their customers: how many, and the first lines, as ``{"line", "name",
    "customer"}``."""

    lines: int = 0
    customers: int = 0
    first: list[dict[str, str]] = field(default_factory=list)


NOBODY = Affected()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmCondition:
    """Something that is wrong now. Two with the same ``kind`` and ``object`` are the same alarm.

    ``object``: the row that it is about, as ``router:7``; ``name``: what that is called. ``facts``: JSON,
    for the sentence (portal.alarms.sentences). ``since`` None: it is not known since when.
    """

    kind: Kind
    object: str
    name: str
    since: datetime | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    routers: tuple[int, ...] = ()
    affected: Affected = NOBODY
