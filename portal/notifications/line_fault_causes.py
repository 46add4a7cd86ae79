"""The causes of lines being down or not in sync: a router, port or link, or another program that changes VPP.

A cause is a text of its kind and its objects' ids, such as ``link:7``. Mails can be searched by it.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.network.path_bfd import PathState
from portal.inventory.models import FRESH, BackboneLink, ObservedInterface, Port, Router, RouterSilence
from portal.vll.models import TunnelPath, VllEnd
from portal.vll.sentences import black_hole_sentence

SILENT = "silent"
OTHER = "other"
_BETWEEN = {
    "path": gettext_noop("There is no route between {routers}."),
    "watched": gettext_noop("The path between {routers} is down."),
}
_Links = dict[int, set[int]]


def silent_router(router_id: int) -> str:
    return f"{SILENT}:{router_id}"


def black_hole_on(path_id: str) -> str:
    return f"blackhole:{path_id}"


def causes_of_down(vlls: Collection[UUID], *, now: datetime) -> dict[UUID, str]:
    """Return the cause of each line that is down, from observations of its ends; OTHER if unknown."""
    ends = _ends(vlls)
    silent = set(RouterSilence.objects.filter(until__isnull=True).values_list("router_id", flat=True))
    routers = {end.port.router_id for each in ends.values() for end in each if _is_cut(end)}
    links = _links_down(routers) if routers else {}
    return {vll: _cause_of_down(ends.get(vll, []), silent, links, now) for vll in vlls}


def causes_of_drift(vlls: Collection[UUID]) -> dict[UUID, str]:
    """Return the cause for each line that is not in sync; OTHER if unknown.

    The cause contains the router, and the error code of the router's response if there is one.
    """
    ends = _ends(vlls)
    return {vll: _cause_of_drift(ends.get(vll, [])) for vll in vlls}


def cause_sentence(cause: str) -> str:
    """Return a sentence about the cause; "" if it is unknown or its object was deleted."""
    what, _colon, about = cause.partition(":")
    ids = [part for part in about.split(":") if part]
    routers = Router.objects
    if what in (SILENT, "vpp", "drift", "answer"):
        router = routers.filter(pk=ids[0]).first()
        return "" if router is None else _of_router(what, router, ids)
    if what == "port":
        port = Port.objects.select_related("router").filter(pk=ids[0]).first()
        return "" if port is None else _("The port {port} has no link.").format(port=port)
    if what == "link":
        link = BackboneLink.objects.select_related("a_router", "z_router").filter(pk=ids[0]).first()
        return "" if link is None else _("The link {link} is down.").format(link=link)
    if what == "blackhole":
        path = TunnelPath.objects.select_related("a_router", "z_router").filter(pk=ids[0]).first()
        return "" if path is None else black_hole_sentence(path)
    if what in _BETWEEN:
        names = sorted(routers.filter(pk__in=ids).values_list("name", flat=True))
        return _(_BETWEEN[what]).format(routers=" – ".join(names))
    return ""


def _of_router(what: str, router: Router, ids: list[str]) -> str:
    if what == SILENT:
        return _("{router} does not answer.").format(router=router)
    if what == "vpp" or ids[1:] == ["vpp_unavailable"]:
        return _("VPP is not working on {router}.").format(router=router)
    if what == "answer":
        return _("{router} answers with {code}.").format(router=router, code=ids[1])
    return _("Somebody else is changing the configuration of {router}.").format(router=router)


def _ends(vlls: Collection[UUID]) -> dict[UUID, list[VllEnd]]:
    found: dict[UUID, list[VllEnd]] = {}
    rows = VllEnd.objects.filter(vll__in=vlls).select_related("port__router__observed", "vll")
    for end in rows.order_by("vll", "side"):
        found.setdefault(end.vll_id, []).append(end)
    return found


def _cause_of_down(ends: Iterable[VllEnd], silent: set[int], links: _Links, now: datetime) -> str:
    ends = list(ends)
    for end in ends:
        observed = getattr(end.port.router, "observed", None)
        if end.port.router_id in silent:
            return silent_router(end.port.router_id)
        if observed is not None and observed.vpp_absent and observed.reported_at >= now - FRESH:
            return f"vpp:{end.port.router_id}"
    for end in ends:
        if end.link_up is False and not end.shut_down:
            return f"port:{end.port_id}"
    if any(_is_cut(end) for end in ends):
        both = sorted(end.port.router_id for end in ends)
        down = sorted(link for router in both for link in links.get(router, ()))
        what = "path" if any(end.reachable is False for end in ends) else "watched"
        return f"link:{down[0]}" if down else f"{what}:" + ":".join(map(str, both))
    return OTHER


def _is_cut(end: VllEnd) -> bool:
    """Return whether the router cannot reach the far end. The line may still be up (see ``is_path_down``)."""
    return end.reachable is False or end.path_state == PathState.DOWN


def _links_down(routers: Collection[int]) -> _Links:
    """Return, for each router, its backbone links whose interface is down on at least one side."""
    found: _Links = {}
    rows = BackboneLink.objects.filter(Q(a_router__in=routers) | Q(z_router__in=routers))
    sides = {
        (router, interface): (link, [a, z])
        for link, a, a_interface, z, z_interface in rows.values_list(
            "pk", "a_router", "a_interface", "z_router", "z_interface"
        )
        for router, interface in ((a, a_interface), (z, z_interface))
    }
    down = ObservedInterface.objects.filter(
        Q(link_up=False) | Q(admin_up=False), router__in={r for r, _ in sides}
    )
    for side in down.values_list("router_id", "name"):
        if side in sides:
            link, both = sides[side]
            for router in both:
                found.setdefault(router, set()).add(link)
    return found


def _cause_of_drift(ends: Iterable[VllEnd]) -> str:
    for end in ends:
        if end.status != VllEnd.Status.VERIFIED and end.reason:
            return f"answer:{end.port.router_id}:{end.reason.get('code', '')}"[:100]
        if end.observed_in_sync is False:
            return f"drift:{end.port.router_id}"
    return OTHER
