"""The details of an order that waits for approval: its path, its ports, and the plan of each router."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from portal.inventory.models import Port
from portal.inventory.port_link_state import with_link_speed
from portal.vll.models import Order, PlanResult
from portal.vll.revision_content import Content, content_of
from portal.web.path_drawing import LinePath, line_path


@dataclass(frozen=True, slots=True)
class Needs:
    """The resources that the line of an order needs.

    ``ports``: by side. Their booked bandwidth includes this order. ``path``: None if both ends are on the
    same router.
    """

    ports: dict[str, Port]
    path: LinePath | None


@dataclass(frozen=True, slots=True)
class PlanPart:
    """The plan of one router. ``sides``: the ends of the line that the plan changes, such as ``["a"]``."""

    router: int
    name: str
    generation: int
    sides: list[str]
    differences: list[dict[str, Any]]
    operations: list[dict[str, Any]]
    ends: list[dict[str, Any]]
    error: str

    @property
    def replaces(self) -> bool:
        """Whether the plan replaces an existing value on the router."""
        return any(each["before"] is not None and each["after"] is not None for each in self.differences)


def needs_of(order: Order, *, now: datetime) -> Needs:
    """Return the resources that the line needs if the order is approved."""
    content = Content.from_json(order.after) if order.after else content_of(order.vll)
    rows = with_link_speed(Port.objects.select_related("router"))
    found = rows.in_bulk({end.port for end in content.ends.values()})
    ports = {side: found[end.port] for side, end in content.ends.items()}
    path = line_path(
        a=ports["a"].router,
        z=ports["z"].router,
        transport=content.transport,
        gre_key=content.gre_key is not None,
        frame=content.frame,
        now=now,
    )
    return Needs(ports=ports, path=path)


def plan_parts(plan: PlanResult) -> list[PlanPart]:
    """Return the plans of the routers. The plan of the A end is first.

    If the plan of one router names no end, its end is the end that the plan of the other router does not
    name.
    """
    parts = [_part(part) for part in plan.routers]
    unnamed = sorted({"a", "z"}.difference(*(part.sides for part in parts)))
    silent = [part for part in parts if not part.sides]
    if len(silent) == 1:
        parts[parts.index(silent[0])] = replace(silent[0], sides=unnamed)
    return sorted(parts, key=lambda part: (part.sides or ["z"], part.name))


def _part(part: dict[str, Any]) -> PlanPart:
    named = [*part["differences"], *part["operations"], *part["ends"]]
    return PlanPart(
        router=part["router"],
        name=part["name"],
        generation=part["generation"],
        sides=sorted({each["end"] for each in named if each.get("end")}),
        differences=part["differences"],
        operations=part["operations"],
        ends=part["ends"],
        error=part["error"],
    )
