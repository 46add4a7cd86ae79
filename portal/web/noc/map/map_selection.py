"""The selection on the map: a line with its path, or a link or router with the effect of its failure."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import User
from portal.core.network.encapsulations import Family
from portal.core.quantities import row_id, uuid_of
from portal.inventory.models import BackboneLink, Router
from portal.underlay.current_topology import current_topology
from portal.underlay.topology import UsedLinks
from portal.vll import queries
from portal.vll.failure_impact import FailureImpact, Fate, HitLine, failure_impact
from portal.vll.models import Vll

# The maximum number of lines that are listed for each effect. Further lines are only counted.
_LINES_SHOWN = 20
_FATES: dict[Fate, tuple[str | Promise, str | Promise, str]] = {
    Fate.DOWN: (_("Down"), _("No path is left between their routers."), "danger"),
    Fate.TOO_WIDE: (
        _("Too wide"),
        _("They stay up, and their largest frames no longer fit the path that is left."),
        "danger",
    ),
    Fate.NOT_KNOWN: (
        _("Not known"),
        _("They keep a path, and the MTU of one of its links is not known."),
        "warning",
    ),
    Fate.DEGRADED: (
        _("Degraded"),
        _("They keep a path that fits their largest frames, and have less in reserve."),
        "warning",
    ),
}


@dataclass(frozen=True, slots=True)
class FateRow:
    """The lines on which a failure has the same effect.

    ``lines``: the first lines. ``count``: the number of all lines. ``shows_mtu``: whether to show the MTU.
    """

    title: str | Promise
    text: str | Promise
    tone: str
    lines: list[HitLine]
    count: int
    shows_mtu: bool

    @property
    def more(self) -> int:
        return self.count - len(self.lines)


@dataclass(frozen=True)
class MapSelection:
    """The selection on the map. At most one of ``link``, ``router`` and ``line`` is set.

    * ``keep``: the selection as a query string; "" without a selection.
    * ``is_gone``: whether the requested object does not exist.
    * ``impact``: the effect of a failure of the link or router.
    * ``path``: the links of the line. ``a`` and ``z``: the routers of its ends.
    """

    keep: str = ""
    is_gone: bool = False
    link: BackboneLink | None = None
    router: Router | None = None
    line: Vll | None = None
    impact: FailureImpact | None = None
    path: UsedLinks = field(default_factory=UsedLinks)
    a: Router | None = None
    z: Router | None = None

    @property
    def is_any(self) -> bool:
        return bool(self.keep)

    @property
    def subject(self) -> Any:
        return self.link or self.router or self.line

    @property
    def link_ids(self) -> list[Hashable]:
        """The ids of the links that the map must show: the selected link, or the links of the line's path."""
        of_path = [link.id for link in (*self.path.primary, *self.path.backup)]
        return [*of_path, self.link.pk] if self.link else of_path

    @cached_property
    def fates(self) -> list[FateRow]:
        if self.impact is None:
            return []
        rows = []
        for fate, (title, text, tone) in _FATES.items():
            if (hit := self.impact.of[fate]).total:
                wide = fate is Fate.TOO_WIDE
                if fate is Fate.DOWN and self.router:
                    text = _("Ending on this router, or left without a path.")
                rows.append(FateRow(title, text, tone, hit.first, hit.total, wide))
        return rows

    @cached_property
    def _link_marks(self) -> dict[Hashable, str]:
        marks = {link.id: "path-backup" for link in self.path.backup}
        marks |= {link.id: "path" for link in self.path.primary}
        return marks | {self.link.pk: "chosen"} if self.link else marks

    def mark_of_link(self, pk: Hashable) -> str:
        return self._link_marks.get(pk, "")

    def mark_of_router(self, pk: Hashable) -> str:
        if self.router is not None and self.router.pk == pk:
            return "chosen"
        return "end" if pk in {end.pk for end in (self.a, self.z) if end is not None} else ""


def map_selection(user: User, query: QueryDict, *, now: datetime) -> MapSelection:
    """Return the selection in the first of the parameters ``?line=``, ``?link=`` and ``?router=`` that is
    set.
    """
    for name, read in (("line", _line), ("link", _link), ("router", _router)):
        if value := query.get(name, ""):
            return read(user, value, urlencode({name: value}), now)
    return MapSelection()


def _line(user: User, value: str, keep: str, now: datetime) -> MapSelection:
    line = _row(queries.vlls(user), uuid_of(value))
    if line is None:
        return MapSelection(keep, is_gone=True)
    a, z = (end.port.router for end in line.ends.all())
    path = UsedLinks()
    if line.family is not None and a.pk != z.pk:
        topology = current_topology(now=now)
        path = topology.used_links(a.pk, z.pk, family=Family(line.family), any_single_failure=True)
    return MapSelection(keep, line=line, path=path, a=a, z=z)


def _link(_user: User, value: str, keep: str, now: datetime) -> MapSelection:
    link = _row(BackboneLink.objects.select_related("a_router", "z_router"), row_id(value))
    if link is None:
        return MapSelection(keep, is_gone=True)
    return MapSelection(keep, link=link, impact=failure_impact(link=link.pk, now=now, shown=_LINES_SHOWN))


def _router(_user: User, value: str, keep: str, now: datetime) -> MapSelection:
    router = _row(Router.objects.filter(retired_at=None), row_id(value))
    if router is None:
        return MapSelection(keep, is_gone=True)
    return MapSelection(
        keep, router=router, impact=failure_impact(router=router.pk, now=now, shown=_LINES_SHOWN)
    )


def _row(rows: QuerySet[Any], pk: Hashable | None) -> Any:
    return None if pk is None else rows.filter(pk=pk).first()
