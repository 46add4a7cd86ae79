"""The state of a line's path between its two routers, and the paths that lines in service use.

A path is watched under two conditions: both routers watch it, and at least one of them has heard the other.
Otherwise the path counts as not watched.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from portal.core.clock import to_time
from portal.core.db.statements import rows_of
from portal.core.network.encapsulations import Encapsulation, Transport
from portal.core.network.path_bfd import LISTENING, PathState, is_path_down
from portal.core.network.required_mtu import MtuPolicy, overhead
from portal.core.reader_texts import time_text
from portal.inventory.models import ObservedRouter
from portal.vll.models import TunnelPath, Vll, VllEnd
from portal.vll.states import IN_SERVICE

# The ids of the lower and the higher router, and the family. Routers identify a path by two loopback
# addresses, so a path has one family.
PathKey = tuple[int, int, int]

# Without conditions in {chosen}, the statement reads all lines in service in one pass.
_PATHS = """
SELECT least(pa.router_id, pz.router_id), greatest(pa.router_id, pz.router_id), v.family, {columns}
FROM vll_vll v
JOIN vll_vllend a ON a.vll_id = v.id AND a.side = 'a' JOIN inventory_port pa ON pa.id = a.port_id
JOIN vll_vllend z ON z.vll_id = v.id AND z.side = 'z' JOIN inventory_port pz ON pz.id = z.port_id
WHERE v.lifecycle = ANY(%s) AND v.family IS NOT NULL AND pa.router_id <> pz.router_id {chosen}
GROUP BY 1, 2, 3 {groups}
"""
# Both routers have the present revision of the tunnel.
_BUILT = """
AND a.status = 'verified' AND a.status_revision = v.revision
AND z.status = 'verified' AND z.status_revision = v.revision
"""


@dataclass(frozen=True, slots=True)
class PathLine:
    """A line's end whose tunnel uses a path, with the revision that the end's router must have."""

    vll: UUID
    side: str
    revision: int


def paths_in_use() -> dict[PathKey, int]:
    """Return the paths that lines in service use, by lower router, higher router and family.

    The value is the largest IP packet that encapsulated frames of these lines need, in bytes.
    """
    needed: dict[PathKey, int] = {}
    kinds = _read(
        columns="v.encapsulation, v.gre_key IS NOT NULL, max(v.frame)",
        groups=", v.encapsulation, 5",
        chosen="",
    )
    for a, z, family, encapsulation, gre_key, frame in kinds:
        transport = Transport.of(Encapsulation(encapsulation), family)
        packet = frame + overhead(transport, MtuPolicy.EXACT, gre_key=gre_key)
        needed[a, z, family] = max(packet, needed.get((a, z, family), 0))
    return needed


def lines_beyond(path: TunnelPath, ip_mtu: int) -> list[Vll]:
    """Return the lines in service on a path that produce IP packets of more than ``ip_mtu`` bytes."""
    routers = (path.a_router_id, path.z_router_id)
    ends = VllEnd.objects.filter(vll=OuterRef("pk"), port__router__in=routers)
    both = ends.values("vll").annotate(routers=Count("port__router", distinct=True)).filter(routers=2)
    lines = Vll.objects.filter(Exists(both), lifecycle__in=IN_SERVICE, family=path.family)
    return [line for line in lines.order_by("created_at", "pk") if line.tunnel_packet > ip_mtu]


def path_lines_on(router_id: int, paths: Collection[TunnelPath]) -> dict[PathKey, PathLine]:
    """Return, for each path, one end on this router. Both routers have confirmed the tunnel of that end's
    line.

    Paths without such an end are left out.
    """
    routers = {path.a_router_id for path in paths} | {path.z_router_id for path in paths}
    chosen = (
        _BUILT
        + "AND %s IN (pa.router_id, pz.router_id) AND pa.router_id = ANY(%s) AND pz.router_id = ANY(%s)"
    )
    rows = _read(router_id, list(routers), list(routers), columns="min(v.id::text)", groups="", chosen=chosen)
    found = {(a, z, family): UUID(vll) for a, z, family, vll in rows}
    ends = VllEnd.objects.filter(vll__in=found.values(), port__router=router_id)
    here = {
        vll: PathLine(vll, side, revision)
        for vll, side, revision in ends.values_list("vll", "side", "vll__revision")
    }
    return {key: here[vll] for key, vll in found.items() if vll in here}


def path_of(vll: Vll) -> TunnelPath | None:
    """Return the stored path of a line's tunnel; None if it is not stored, or the line has no tunnel.

    Prefetch ``ends`` and their ports.
    """
    if vll.family is None:
        return None
    a, z = sorted(end.port.router_id for end in vll.ends.all())
    return TunnelPath.objects.filter(a_router=a, z_router=z, family=vll.family).first()


def _read(*more: Any, columns: str, groups: str, chosen: str) -> list[tuple[Any, ...]]:
    statement = _PATHS.format(columns=columns, groups=groups, chosen=chosen)
    return rows_of(statement, [list(IN_SERVICE), *more])


class Unwatched(StrEnum):
    """The reasons why a path is not watched."""

    OFF = "off"
    ROUTER_SILENT = "router_silent"
    CANNOT = "cannot"
    NOT_YET = "not_yet"
    SHUT = "shut"
    REFUSED = "refused"
    UNHEARD = "unheard"


_TEXTS = {
    Unwatched.OFF: _("The path between {a} and {z} is not watched: watching is switched off."),
    Unwatched.ROUTER_SILENT: _(
        "The path between {a} and {z} is not watched: {router} has not reported yet what it can watch."
    ),
    Unwatched.CANNOT: _("The path between {a} and {z} is not watched: {router} cannot watch paths."),
    Unwatched.NOT_YET: _("The path between {a} and {z} is not watched yet: {router} is about to begin."),
    Unwatched.SHUT: _(
        "The path between {a} and {z} is not watched: somebody has switched it off on {router}."
    ),
    Unwatched.REFUSED: _("The path between {a} and {z} is not watched: {router} refuses to."),
    Unwatched.UNHEARD: _(
        "The path between {a} and {z} is not watched: the routers do not receive each other's checks."
    ),
}
# The placeholder of a time in a sentence. Each page inserts the time in the reader's format.
TIME = "{time}"
# Hints for the NOC about a possible cause.
_HINTS = {
    Unwatched.CANNOT: _(
        "Multihop BFD needs VPP 25.02 or later. vpp.path_watch in the agent's file may be off."
    ),
    Unwatched.SHUT: _("The agent did not create the BFD session, whose admin state is down."),
    Unwatched.REFUSED: _("VPP's own message is on the router's page."),
    Unwatched.UNHEARD: _(
        "Both routers have a BFD session, but neither session was ever up: UDP port 4784 may be"
        " filtered on the path."
    ),
}
_OF_STATES = {
    "": Unwatched.NOT_YET,
    PathState.SHUT: Unwatched.SHUT,
    PathState.REFUSED: Unwatched.REFUSED,
}


@dataclass(frozen=True, slots=True)
class PathStatus:
    """The state of a path.

    ``state``: ``up``, ``down``, ``starting`` or ``not_watched``. ``why`` is set only for ``not_watched``.
    ``since``: when the path came up or went down, by the routers' clocks. ``sentence`` contains ``{time}`` in
    the place of that time. ``hint`` is for the NOC.
    """

    state: str
    sentence: str
    since: datetime | None = None
    why: Unwatched | None = None
    hint: str = ""

    @property
    def message(self) -> str:
        """Return the sentence with its time."""
        if self.since is None:
            return self.sentence
        return self.sentence.replace(TIME, time_text(self.since, seconds=True))


def path_status(vll: Vll) -> PathStatus | None:
    """Return the status of a line's path.

    Return None for a line that is not in service or has both ends on one router. If one of the two routers
    does not watch the path, or if they never heard each other, the state is ``not_watched``. Prefetch
    ``ends`` with ``port.router.observed``.
    """
    if vll.family is None or vll.lifecycle not in IN_SERVICE:
        return None
    ends = sorted(vll.ends.all(), key=lambda end: end.side)
    names = {"a": ends[0].port.router.name, "z": ends[-1].port.router.name}
    found = _unwatched(ends)
    if found is not None:
        why, router = found
        text = _TEXTS[why].format(router=router, **names)
        hint = str(_HINTS.get(why, ""))
        return PathStatus("not_watched", text, why=why, hint=hint)
    states = [end.path_state for end in ends]
    if is_path_down(states):
        since, *_later = _since(ends, PathState.DOWN)
        sentence = _("The path between {a} and {z} has been down since {time}.").format(**names, time=TIME)
        return PathStatus("down", sentence, since)
    if set(states) == {PathState.UP}:
        *_before, since = _since(ends, PathState.UP)
        sentence = _("The path between {a} and {z} has been up since {time}.").format(**names, time=TIME)
        return PathStatus("up", sentence, since)
    return PathStatus(
        "starting", _("Watching the path between {a} and {z} is about to begin.").format(**names)
    )


def _unwatched(ends: Sequence[VllEnd]) -> tuple[Unwatched, str] | None:
    """Return why the path is not watched, and the router that causes it ("" if no single router does).

    Return None if the path is watched.
    """
    if settings.LONGLINE_PATH_WATCH is None:
        return Unwatched.OFF, ""
    for end in ends:
        router = end.port.router
        seen: ObservedRouter | None = getattr(router, "observed", None)
        if seen is None:
            return Unwatched.ROUTER_SILENT, router.name
        if not seen.path_watch:
            return Unwatched.CANNOT, router.name
        if end.path_state not in LISTENING:
            return _OF_STATES[end.path_state], router.name
    if {end.path_state for end in ends} == {PathState.UNHEARD}:
        return Unwatched.UNHEARD, ""
    return None


def _since(ends: Sequence[VllEnd], state: PathState) -> list[datetime]:
    """Return when the ends in this state entered it, the earliest time first."""
    return sorted(
        to_time(end.path_since_ms)
        for end in ends
        if end.path_state == state and end.path_since_ms is not None
    )
