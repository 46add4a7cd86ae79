"""Find the lines that a cause affects, with a fixed number of SQL statements for any number of causes."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from portal.alarms.kinds import Affected, Kind
from portal.core.db.statements import rows_of
from portal.vll.models import TunnelPath, Vll, VllEnd
from portal.vll.path_status import lines_beyond
from portal.vll.states import Lifecycle, OperStatus

# An alarm names at most this many lines. Its counts include all lines.
NAMED = 5
# The columns of a statement that groups lines by cause: counts of lines and customers, first lines' ids.
SUMMARY = f"count(*), count(DISTINCT customer_id), (array_agg(id ORDER BY created_at, id))[1:{NAMED}]"
_ON_ROUTERS = f"""
SELECT router, {SUMMARY}
FROM (SELECT DISTINCT port.router_id AS router, line.id, line.customer_id, line.created_at
      FROM inventory_port AS port
      JOIN vll_vllend AS line_end ON line_end.port_id = port.id
      JOIN vll_vll AS line ON line.id = line_end.vll_id
      WHERE port.router_id = ANY(%s) AND line.lifecycle = '{Lifecycle.ACTIVE.value}') AS here
GROUP BY router
"""  # noqa: S608 - constants
Summary = tuple[int, int, list[UUID]]


def on_routers(routers: Collection[int]) -> dict[int, Affected]:
    """Return the lines in service that end on each router, by the router's id."""
    if not routers:
        return {}
    rows = rows_of(_ON_ROUTERS, [list(routers)])
    return dict(zip([row[0] for row in rows], named([row[1:] for row in rows]), strict=True))


def named(summaries: Iterable[Summary]) -> list[Affected]:
    """Return the groups of lines that ``SUMMARY`` found, with the names of the first lines."""
    summaries = list(summaries)
    wanted = {pk for _lines, _customers, first in summaries for pk in first}
    known = _names_of(wanted) if wanted else {}
    return [
        Affected(lines, customers, [known[pk] for pk in first if pk in known])
        for lines, customers, first in summaries
    ]


def summed(lines: Sequence[Vll]) -> Summary:
    """Return the values of ``SUMMARY`` for lines that are already loaded, without a statement."""
    return len(lines), len({line.customer_id for line in lines}), [line.pk for line in lines[:NAMED]]


def of_lines(lines: Sequence[Vll]) -> Affected:
    """Return these loaded lines as an affected group, with their customers."""
    count, customers, _first = summed(lines)
    return Affected(
        count, customers, [_named(line.pk, str(line), str(line.customer)) for line in lines[:NAMED]]
    )


def lines_behind(kind: str, object: str) -> QuerySet[Vll]:
    """Return the lines that an alarm of this kind and object concerns now; none for an unknown kind."""
    if kind not in Kind.values:
        return Vll.objects.none()
    what, _colon, about = object.partition(":")
    return Vll.objects.filter(_behind(kind, what, about), lifecycle=Lifecycle.ACTIVE)


def _behind(kind: str, what: str, about: str) -> Q:
    """Return a filter for the lines that an alarm concerns. For the object ``router:7``, ``what`` is "router"
    and ``about`` is "7".

    The filter has subqueries and no joins, so that each line is counted once.
    """
    if what == "line":
        return Q(pk=about)
    if what == "router":
        return Q(pk__in=_ending(port__router=about)) & (
            Q(in_sync=False) if kind in (Kind.ROUTER_DIFFERS, Kind.CONTESTED) else Q()
        )
    if what == "port" and kind == Kind.PORT_DOWN:
        return Q(pk__in=_ending(port=about), oper_status=OperStatus.DOWN)
    if what == "port" and kind == Kind.PORT_SLOW:
        return Q(pk__in=_ending(port=about))
    if what == "path":
        a, z, family = about.split(":")
        if kind == Kind.BLACK_HOLE:
            path = TunnelPath.objects.filter(Q(a_router=a, z_router=z, family=family)).first()
            beyond = lines_beyond(path, path.verified_ip_mtu or 0) if path else []
            return Q(pk__in=[line.pk for line in beyond])
        here, there = _ending(port__router=a), _ending(port__router=z)
        return Q(pk__in=here) & Q(pk__in=there) & Q(family=family, oper_status=OperStatus.DOWN)
    return Q(pk__in=())


def _ending(**where: Any) -> QuerySet[Any, Any]:
    return VllEnd.objects.filter(**where).values("vll")


def _names_of(lines: Collection[UUID]) -> dict[UUID, dict[str, str]]:
    """Return the names of lines. Only needed columns are read: a failed network has thousands of lines."""
    columns = Vll.objects.filter(pk__in=lines).values_list("pk", "description", "customer__name")
    return {pk: _named(pk, description or str(pk), customer) for pk, description, customer in columns}


def _named(line: UUID, name: str, customer: str) -> dict[str, str]:
    return {"line": str(line), "name": name, "customer": customer}
