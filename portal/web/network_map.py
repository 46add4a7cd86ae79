"""The map of the backbone: links and routers as rows of two tables, and the same drawn."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from portal.allocation.cpu_core_usage import CoreUse, core_use_of
from portal.core.units import measured_text, rate_text
from portal.inventory.measured_link_traffic import LinkTraffic, link_traffic
from portal.inventory.models import Router
from portal.inventory.queries import (
    interface_missing,
    mtu_mismatch,
    reported_ip_mtu,
    routers_without_links,
)
from portal.underlay.topology import Topology
from portal.underlay.topology_cache import current_topology
from portal.vll.booked_link_loads import LinkLoad, link_loads
from portal.vll.models import TunnelPath
from portal.vll.operations.oper_status import FRESH
from portal.vll.proven_link_mtus import Proven, proven_link_mtus
from portal.web.noc_alarms import NEARLY_FULL
from portal.web.svg_map import Drawing, Join, Point, drawing_of

# More are neither drawn nor read by anybody at once; a search narrows them.
LINKS_SHOWN = 200
# Adding the lines up reads all of them; a minute old is new enough for what is sold.
_LOADS_KEPT_S = 60
NO_LOAD = LinkLoad(0, 0)


@dataclass(frozen=True, slots=True)
class RouterRow:
    """``state``: transit, reporting, silent or drained, with the tone of its badge."""

    router: Router
    state: str
    tone: str
    cores: CoreUse | None


@dataclass(frozen=True, slots=True)
class LinkRow:
    """``ip_mtu``: as orders count it, ``reported``: the smaller of what both agents see (bytes), both None
    where unknown; ``load`` None where it is not summed up.

    ``traffic``: what it carries now, None where no agent tells.
    """

    link: Any
    ip_mtu: int | None
    reported: int | None
    proven: Proven | None
    state: str
    tone: str
    load: LinkLoad | None
    traffic: LinkTraffic | None


@dataclass(frozen=True, slots=True)
class NetworkMap:
    """``loads_at``: when the lines were added up; None where there are too many paths for that.

    ``paths``: the first ``LINKS_SHOWN`` between these routers that lines take.
    """

    routers: list[RouterRow]
    links: list[LinkRow]
    paths: list[TunnelPath]
    drawing: Drawing
    loads_at: datetime | None


def network_map(links: list[Any], *, unlinked: bool, now: datetime) -> NetworkMap:
    """Of these rows of ``links_with_observed_mtu`` and the routers that they join; ``unlinked``: and of the
    first ``LINKS_SHOWN`` routers that have no link.
    """
    loads_at, loads = _loads(now)
    topology = current_topology(now=now)
    traffic = link_traffic([link.pk for link in links], since=now - FRESH)
    proven = proven_link_mtus(topology=topology, now=now)
    link_rows = [
        _link_row(link, topology, loads, traffic.get(link.pk), proven.get(link.pk)) for link in links
    ]
    ids = {router for link in links for router in (link.a_router_id, link.z_router_id)}
    if unlinked:
        ids |= set(routers_without_links().values_list("pk", flat=True)[:LINKS_SHOWN])
    routers = list(Router.objects.filter(pk__in=ids).select_related("site", "observed").order_by("name"))
    use = core_use_of([router for router in routers if router.has_agent])
    router_rows = [_router_row(router, use.get(router.pk), now) for router in routers]
    drawing = drawing_of([_spot(row) for row in router_rows], [_join(row) for row in link_rows])
    return NetworkMap(router_rows, link_rows, list(_paths(ids)[:LINKS_SHOWN]), drawing, loads_at)


def _paths(routers: set[int]) -> QuerySet[TunnelPath]:
    paths = TunnelPath.objects.filter(in_use=True, a_router__in=routers, z_router__in=routers)
    by_name = ("a_router__name", "z_router__name", "family")
    return paths.select_related("a_router", "z_router").order_by(*by_name)


def _loads(now: datetime) -> tuple[datetime | None, dict[Any, LinkLoad] | None]:
    kept = cache.get("web:link-loads")
    if kept is None:
        loads = link_loads(now=now)
        kept = (None if loads is None else now, loads)
        cache.set("web:link-loads", kept, _LOADS_KEPT_S)
    return kept  # type: ignore[no-any-return]


def _router_row(router: Router, cores: CoreUse | None, now: datetime) -> RouterRow:
    seen = getattr(router, "observed", None)
    if router.drained_since is not None:
        return RouterRow(router, _("drained"), "warning", cores)
    if not router.has_agent:
        return RouterRow(router, _("transit only"), "muted", None)
    if seen is None or seen.reported_at < now - FRESH:
        return RouterRow(router, _("silent"), "danger", cores)
    return RouterRow(router, _("reporting"), "success", cores)


def _link_row(
    link: Any,
    topology: Topology,
    loads: dict[Any, LinkLoad] | None,
    traffic: LinkTraffic | None,
    proven: Proven | None,
) -> LinkRow:
    counted = topology.link(link.pk)
    ip_mtu = None if counted is None else topology.ip_mtu(counted)
    state, tone = _link_state(link, ip_mtu)
    load = None if loads is None else loads.get(link.pk, NO_LOAD)
    if traffic is not None and (traffic.part or 0) >= NEARLY_FULL and tone == "success":
        state, tone = _("nearly full"), "warning"
    return LinkRow(link, ip_mtu, reported_ip_mtu(link), proven, state, tone, load, traffic)


def _link_state(link: Any, ip_mtu: int | None) -> tuple[str, str]:
    if not link.in_service:
        return _("out of service"), "muted"
    if interface_missing(link):
        return _("interface missing"), "danger"
    if mtu_mismatch(link):
        return _("MTUs contradict"), "warning"
    if ip_mtu is None:
        return _("MTU not known"), "warning"
    return _("in service"), "success"


def _spot(row: RouterRow) -> Point:
    note = row.state if row.cores is None else _("%(n)d %% of cores") % {"n": row.cores.percent}
    full = row.cores is not None and row.cores.part >= NEARLY_FULL
    return Point(
        row.router.pk, row.router.name, note, "warning" if full and row.tone == "success" else row.tone
    )


def _join(row: LinkRow) -> Join:
    label = _("MTU %(n)s") % {"n": "?" if row.ip_mtu is None else row.ip_mtu}
    note = _carried(row)
    return Join(
        row.link.a_router_id,
        row.link.z_router_id,
        label,
        f"{row.link}: {row.state}, {label} {note}".strip(),
        note=note,
        tone=row.tone,
        backup=not row.link.in_service,
    )


def _carried(row: LinkRow) -> str:
    """The text below a link: what is measured on it, else what is sold over it."""
    if row.traffic is not None:
        if row.traffic.percent is not None:
            return _("%(n)d %% used") % {"n": row.traffic.percent}
        return _("%(rate)s used") % {"rate": measured_text(row.traffic.most_bps)}
    if row.load is not None and row.load.lines:
        return _("%(rate)s sold") % {"rate": rate_text(row.load.cir_bps)}
    return ""
