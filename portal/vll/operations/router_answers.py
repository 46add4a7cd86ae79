"""What routers say, in the domain's own terms."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class EndAnswer:
    """An agent's answer about one VLL end at one revision (docs/agent-api.md).

    ``for_good`` says that asking again cannot help; the caller knows VPP's return codes. ``look`` is the
    number of the agent's look at VPP that the answer rests on; None: it does not say.
    """

    vll: UUID
    side: str
    revision: int
    status: str
    reason: dict[str, Any] | None
    for_good: bool
    policed: bool = False
    look: int | None = None


@dataclass(frozen=True, slots=True)
class EndObservation:
    """What an agent observes about one VLL end; ``reachable`` is None for a local cross-connect.

    ``contested``: what somebody else changes again after each repair.
    """

    vll: UUID
    side: str
    revision: int
    link_up: bool
    reachable: bool | None
    in_sync: bool
    policed: bool = False
    drift: list[dict[str, Any]] = field(default_factory=list)
    contested: list[dict[str, Any]] = field(default_factory=list)
