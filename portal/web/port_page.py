"""The page of a port, with a picture of its VLANs."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import template
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Min
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from portal.accounts import permissions
from portal.accounts.models import User
from portal.accounts.permissions import customers_named
from portal.allocation.pool_usage import VlanRange, VlanUsage, vlan_usage
from portal.core import clock
from portal.core.db.row_conditions import EqualsAny
from portal.core.network.vlan_tags import MAX_VLAN, MIN_VLAN
from portal.core.reader_texts import count_text
from portal.diagnosis.health import with_health
from portal.inventory.interfaces import LinkState, port_link, with_link_speed
from portal.inventory.models import FRESH, Port
from portal.telemetry.router_losses import port_losses
from portal.vll import queries
from portal.vll.models import VllEnd
from portal.vll.states import TERMINAL_LIFECYCLES
from portal.web.orders.port_choice import orderable_ports
from portal.web.page.badges import badge_markup
from portal.web.page.base import SignedInRequest, requires
from portal.web.page.list_filters import newest_first

COLUMNS = 100
_STRIP = 1000
# The maximum number of free ranges that are links in the picture. Further ranges would be too small to click.
# The list next to the picture has all ranges.
LINKS = 60


def strips_of(usage: VlanUsage) -> list[dict[str, Any]]:
    """Return the five strips with all VLANs. A strip is ``rows`` cells high and ``COLUMNS`` cells wide.

    * ``used``: the VLANs in use. ``shared``: the VLANs with only some inner VLANs in use. ``outside``: cells
      without a VLAN. Each value is SVG path data in units of cells; "" if there are no such cells.
    * ``free``: the largest free ranges, which become links, each with its path data in this strip.
    """
    free = sorted(usage.free, key=len, reverse=True)[:LINKS]
    return [_strip(usage, free, start) for start in range(0, MAX_VLAN + 1, _STRIP)]


def _strip(usage: VlanUsage, free: list[VlanRange], start: int) -> dict[str, Any]:
    last = min(start + _STRIP - 1, MAX_VLAN)
    whole = VlanRange(max(start, MIN_VLAN), last)

    def drawn(ranges: tuple[VlanRange, ...]) -> str:
        return "".join(_path(part, start) for each in ranges if (part := _within(each, whole)))

    areas = [(each, _path(part, start)) for each in free if (part := _within(each, whole))]
    rows = -(-(last + 1 - start) // COLUMNS)
    beyond = ((start, whole.first - 1), (last + 1, start + rows * COLUMNS - 1))
    outside = "".join(_path(VlanRange(*each), start) for each in beyond if each[0] <= each[1])
    paths = {"used": drawn(usage.used), "shared": drawn(usage.shared), "outside": outside}
    return {"vlans": whole, "rows": rows, "free": areas, **paths}


def _within(vlans: VlanRange, other: VlanRange) -> VlanRange | None:
    first, last = max(vlans.first, other.first), min(vlans.last, other.last)
    return VlanRange(first, last) if first <= last else None


def _path(vlans: VlanRange, start: int) -> str:
    """Return SVG path data for a range of VLANs, as up to three rectangles.

    The rectangles are the part of the first row, the whole rows, and the part of the last row.
    """
    path, at, end = "", vlans.first - start, vlans.last - start + 1
    while at < end:
        row, column = divmod(at, COLUMNS)
        whole_rows = (end - at) // COLUMNS if column == 0 else 0
        width = COLUMNS if whole_rows else min(COLUMNS - column, end - at)
        height = max(whole_rows, 1)
        path += f"M{column} {row}h{width}v{height}h-{width}z"
        at += width * height
    return path


register = template.Library()

_TONES = {
    LinkState.UP: "success",
    LinkState.DOWN: "danger",
    LinkState.OFF: "warning",
    LinkState.MISSING: "warning",
    LinkState.UNKNOWN: "muted",
}
_LOST = ("drops", "rx_miss", "rx_errors", "rx_no_buffer", "tx_errors")


@register.simple_tag
def port_link_badge(state: LinkState) -> SafeString:
    """Return the badge for the state of a port's link."""
    return badge_markup(state.label, _TONES[state])


@register.filter
def vlan_count(ranges: tuple[VlanRange, ...]) -> str:
    """Return the number of VLANs in the ranges, such as ``4 094``."""
    return count_text(sum(len(each) for each in ranges))


@register.simple_tag
def vlan_ranges(ranges: tuple[VlanRange, ...], most: int | None) -> dict[str, Any]:
    """Return the first ``most`` ranges, and the number of further ranges; all if ``most`` is None."""
    shown = ranges if most is None else ranges[:most]
    return {"shown": shown, "more": len(ranges) - len(shown)}


@register.filter
def any_lost(counts: Mapping[str, float | None]) -> bool:
    """Return whether a port lost or dropped at least one frame."""
    return any(counts[name] for name in _LOST)


@register.filter
def missed(counts: Mapping[str, float | None]) -> float:
    """Return the number of frames that the router could not receive although they arrived at the port."""
    return (counts["rx_miss"] or 0) + (counts["rx_no_buffer"] or 0)


_RECENT = timedelta(days=1)
_LOSS_STEP_S = 1800
# The maximum number of VLAN ranges in the list. With ``?vlans=all``, the list has all ranges.
RANGES_SHOWN = 24


def visible_port(user: User, port_id: int) -> Port:
    """Return the port with its router and the speed of its link.

    Raises Http404 if the user may not see it.
    """
    rows = Port.objects.visible_to(user).select_related("router__site", "router__observed", "customer")
    port: Port = get_object_or_404(with_link_speed(rows), pk=port_id)
    return port


@requires(permissions.may_see, of=visible_port)
@require_safe
def page(request: SignedInRequest, port: Port) -> HttpResponse:
    """Show a port. With ``?vlans=all``, all VLAN ranges are listed.

    ``?after=`` is the cursor for the pages of its lines.
    """
    now = clock.now()
    ends = VllEnd.objects.filter(port=port).exclude(vll__lifecycle__in=TERMINAL_LIFECYCLES)
    here = EqualsAny("pk", ArraySubquery(ends.values("vll")))
    lines = queries.vlls(request.user).filter(customers_named(request.user), here)
    found = newest_first(lines, by="created_at", after=request.GET.get("after", ""))
    usage = vlan_usage(port)
    link = port_link(port, reported_since=now - FRESH)
    context = {
        "port": port,
        "link": link,
        "usage": usage,
        "strips": strips_of(usage),
        "ranges_shown": None if request.GET.get("vlans") == "all" else RANGES_SHOWN,
        "vlls": with_health(found.rows),
        "page": found,
        # The graph begins at the time when the port got its first line.
        "since": port.vlan_leases.aggregate(at=Min("leased_at"))["at"],
        "may_order": orderable_ports(request.user).filter(pk=port.pk).exists(),
        "order_url": f"{reverse('web:order')}?port={port.pk}",
        "losses": port_losses(port=port, since=now - _RECENT, until=now, step_s=_LOSS_STEP_S, now=now),
    }
    return render(request, "ports/port.html", context)
