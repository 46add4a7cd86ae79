"""The page with the map of the backbone: a drawing, and tables of links and routers."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.cache import cache
from django.db.models import Case, Q, QuerySet, When
from django.http import HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from portal.accounts import permissions
from portal.alarms.router_alarms import NEARLY_FULL
from portal.allocation.cpu_core_bookings import CoreUse, core_use_of
from portal.core import clock
from portal.core.reader_texts import measured_text, rate_text
from portal.inventory.models import FRESH, Router, Site
from portal.inventory.queries import (
    LinkTraffic,
    interface_missing,
    link_traffic,
    links_at,
    links_with_observed_mtu,
    mtu_mismatch,
    reported_ip_mtu,
    routers_without_links,
)
from portal.underlay.current_topology import current_topology
from portal.underlay.topology import Topology
from portal.vll.link_loads_and_mtus import LinkLoad, VerifiedMtu, link_loads, verified_link_mtus
from portal.vll.models import TunnelPath
from portal.web.noc.inventory.inventory_kinds import LINKS
from portal.web.noc.map.map_selection import MapSelection, map_selection
from portal.web.noc.map.svg_map import NARROW, WIDTH, Join, Point, Sent, drawing_of
from portal.web.page.base import SignedInRequest, requires
from portal.web.page.list_filters import filtered

# The maximum number of links on the map. More links are slow to draw and hard to read. A search reduces them.
LINKS_SHOWN = 120
PATHS_SHOWN = 50
# Links with at least this load are drawn wider. If such a link fails, another link with the same load may
# have no room for its traffic.
BUSY = 0.5
# The time (s) for which the sold bandwidth of links is cached, because its computation reads all lines.
_LOADS_KEPT_S = 60
NO_LOAD = LinkLoad(0, 0)


@dataclass(frozen=True, slots=True)
class RouterRow:
    """A router in the table. ``state``: transit only, reporting, silent or drained. ``tone``: the tone of the
    badge.
    """

    router: Router
    state: str
    tone: str
    cores: CoreUse | None


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link in the table.

    * ``ip_mtu``: the IP MTU (bytes) that orders use; None if unknown.
    * ``reported``: the smaller IP MTU (bytes) that the agents of both sides report; None if unknown.
    * ``load``: the sold bandwidth; None if it is not calculated.
    * ``traffic``: the current traffic; None if no agent reports it.
    * ``is_missing``: whether an agent does not report the link's interface.
    """

    link: Any
    name: str
    ip_mtu: int | None
    reported: int | None
    verified_mtu: VerifiedMtu | None
    state: str
    tone: str
    load: LinkLoad | None
    traffic: LinkTraffic | None
    is_missing: bool

    @property
    def is_used(self) -> bool:
        return self.link.in_service and not self.is_missing


def network_map(
    links: list[Any], *, unlinked: bool, chosen: MapSelection, query: str, now: datetime
) -> dict[str, Any]:
    """Return the map of these links and their routers.

    ``links``: rows of ``links_with_observed_mtu``. ``unlinked``: whether to add the first ``LINKS_SHOWN``
    routers without a link. ``chosen``: the selection. ``query``: the parameters to keep in the addresses of
    the drawing. The result is the context of the template:

    * ``paths``: the first ``PATHS_SHOWN`` paths of lines: the paths of the selected router, or of all routers
      if none is selected. ``has_more_paths``: whether there are more paths.
    * ``narrow_drawing``: a drawing for narrow windows; None if there is none.
    * ``loads_at``: when the loads were calculated; None if there are too many paths to calculate them.
    * ``usual_mtu``: the IP MTU (bytes) of most links. The drawing shows only other values.
    * ``unlocated``: the sites without coordinates, if other sites have coordinates.
    """
    loads_at, loads = _loads(now)
    topology = current_topology(now=now)
    traffic = link_traffic([link.pk for link in links], since=now - FRESH)
    verified_mtus = verified_link_mtus(topology=topology, now=now)
    link_rows = [
        _link_row(link, topology, loads, traffic.get(link.pk), verified_mtus.get(link.pk)) for link in links
    ]
    ids = {router for link in links for router in (link.a_router_id, link.z_router_id)}
    ids |= {router.pk for router in (chosen.router, chosen.a, chosen.z) if router is not None}
    if unlinked:
        ids |= set(routers_without_links().values_list("pk", flat=True)[:LINKS_SHOWN])
    routers = list(Router.objects.filter(pk__in=ids).select_related("site", "observed").order_by("name"))
    use = core_use_of([router for router in routers if router.has_agent])
    router_rows = [_router_row(router, use.get(router.pk), now) for router in routers]
    usual = Counter(row.ip_mtu for row in link_rows if row.ip_mtu is not None).most_common(1)
    usual_mtu = usual[0][0] if usual else None
    points = [_point(row, chosen, query) for row in router_rows]
    joins = [_join(row, usual_mtu, chosen, query) for row in link_rows]
    drawing = drawing_of(points, joins, width=WIDTH)
    narrow = None if drawing.compact else drawing_of(points, joins, width=NARROW)
    paths = list(_paths(ids, chosen.router)[: PATHS_SHOWN + 1])
    return {
        "routers": router_rows,
        "links": link_rows,
        "paths": paths[:PATHS_SHOWN],
        "has_more_paths": len(paths) > PATHS_SHOWN,
        "drawing": drawing,
        "narrow_drawing": narrow,
        "loads_at": loads_at,
        "usual_mtu": usual_mtu,
        "unlocated": _unlocated(routers),
    }


def _unlocated(routers: list[Router]) -> list[Site]:
    """Return the sites without coordinates, by name; an empty list if no site has coordinates."""
    sites = {router.site_id: router.site for router in routers}.values()
    lacking = [site for site in sites if site.coordinates is None]
    return sorted(lacking, key=lambda site: site.name) if len(lacking) < len(sites) else []


def _paths(routers: set[int], chosen: Router | None) -> QuerySet[TunnelPath]:
    """Return the paths in use between these routers. Paths with a finding are first."""
    paths = TunnelPath.objects.filter(in_use=True, a_router__in=routers, z_router__in=routers)
    if chosen is not None:
        paths = paths.filter(Q(a_router=chosen) | Q(z_router=chosen))
    well_last = Case(When(finding="", then=1), default=0)
    return paths.select_related("a_router", "z_router").order_by(
        well_last, "a_router__name", "z_router__name", "family"
    )


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
    verified_mtu: VerifiedMtu | None,
) -> LinkRow:
    counted = topology.link(link.pk)
    ip_mtu = None if counted is None else topology.ip_mtu(counted)
    state, tone = _link_state(link, ip_mtu)
    load = None if loads is None else loads.get(link.pk, NO_LOAD)
    if traffic is not None and (traffic.part or 0) >= NEARLY_FULL and tone == "success":
        state, tone = _("nearly full"), "warning"
    return LinkRow(
        link,
        str(link),
        ip_mtu,
        reported_ip_mtu(link),
        verified_mtu,
        state,
        tone,
        load,
        traffic,
        is_missing=interface_missing(link),
    )


def _link_state(link: Any, ip_mtu: int | None) -> tuple[str, str]:
    if not link.in_service:
        return _("out of service"), "muted"
    if interface_missing(link):
        return _("interface missing"), "danger"
    if mtu_mismatch(link):
        return _("MTUs conflict"), "warning"
    if ip_mtu is None:
        return _("MTU not known"), "warning"
    return _("in service"), "success"


def _point(row: RouterRow, chosen: MapSelection, query: str) -> Point:
    router, site = row.router, row.router.site
    note = row.state if row.cores is None else _("%(n)d %% of cores") % {"n": row.cores.percent}
    full = row.cores is not None and row.cores.part >= NEARLY_FULL
    mark = chosen.mark_of_router(router.pk)
    if mark == "end":
        note = _("A end") if chosen.a is not None and router.pk == chosen.a.pk else _("Z end")
    return Point(
        router.pk,
        router.name,
        note,
        "warning" if full and row.tone == "success" else row.tone,
        title=f"{router.name}, {site.name}: {row.state}",
        href=f"?{query}router={router.pk}#map",
        mark=mark,
        site=site.name,
        coordinates=site.coordinates,
    )


def _join(row: LinkRow, usual_mtu: int | None, chosen: MapSelection, query: str) -> Join:
    mtu = _("MTU %(n)s") % {"n": "?" if row.ip_mtu is None else row.ip_mtu}
    mark, traffic = chosen.mark_of_link(row.link.pk), row.traffic
    sent = None
    if row.link.in_service and not row.is_missing and traffic is not None:
        sent = (
            _sent(traffic, traffic.a_to_z_bps),
            _sent(traffic, traffic.z_to_a_bps),
        )
    labels = [] if sent else [_("not measured") if row.is_used else row.state]
    if not sent and row.load is not None and row.load.lines:
        labels.append(_("%(rate)s sold") % {"rate": rate_text(row.load.cir_bps)})
    if row.is_used and row.ip_mtu != usual_mtu:
        labels.append(mtu)
    return Join(
        row.link.a_router_id,
        row.link.z_router_id,
        f"{row.name}: {row.state}, {mtu}",
        tuple(labels),
        sent,
        tone=row.tone,
        level="" if sent else "unmeasured" if row.is_used else "missing" if row.is_missing else "off",
        odd=bool(mark) or row.tone in ("warning", "danger"),
        href=f"?{query}link={row.link.pk}#map",
        mark=mark,
    )


def _sent(traffic: LinkTraffic, bps: int | None) -> Sent:
    """Return the traffic in per cent of the link's capacity, or as a rate if the capacity is unknown."""
    percent = traffic.percent_of(bps)
    if bps is None:
        return Sent("", "unmeasured")
    if percent is None:
        return Sent(measured_text(bps), "some")
    level = "full" if percent >= NEARLY_FULL * 100 else "busy" if percent >= BUSY * 100 else "low"
    return Sent(_("%(n)d %%") % {"n": percent}, level)


@requires(permissions.may_run_the_network)
def page(request: SignedInRequest) -> HttpResponse:
    """Show the first ``LINKS_SHOWN`` links that match the search and the filter.

    Without a search or a filter, the map also shows routers without links. The selected line, link or router
    is always shown.
    """
    now = clock.now()
    chosen = map_selection(request.user, request.GET, now=now)
    matching = filtered(links_with_observed_mtu(), request.GET, LINKS.filters)
    links = list(matching.rows.order_by(*LINKS.by)[: LINKS_SHOWN + 1])
    shown = {link.pk: link for link in links[:LINKS_SHOWN]}
    if chosen.is_any:
        others = links_with_observed_mtu().filter(links_at(chosen.link_ids, chosen.router))
        shown |= {link.pk: link for link in others.exclude(pk__in=shown)[:LINKS_SHOWN]}
    query = f"{matching.keep}&" if matching.keep else ""
    context = {
        "filtered": matching,
        "map": network_map(
            list(shown.values()), unlinked=not matching.is_filtered, chosen=chosen, query=query, now=now
        ),
        "chosen": chosen,
        "query": query,
        "shown": LINKS_SHOWN,
        "more": len(links) > LINKS_SHOWN,
    }
    context["drawing"] = render_to_string("noc/map/_drawing.html", context, request)
    context["facts"] = render_to_string("noc/map/_facts.html", context, request)
    return render(request, "noc/map/_map.html" if request.htmx else "noc/map/map.html", context)
