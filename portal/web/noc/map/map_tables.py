"""The rows of the map's tables. Python renders them, because templates are too slow for hundreds of rows."""

from collections.abc import Callable, Iterable

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from portal.core import reader_texts
from portal.inventory.queries import LinkTraffic
from portal.web.noc.map.network_map import LinkRow, RouterRow
from portal.web.page.badges import badge_markup, core_meter

register = template.Library()

# The arguments: label of the column, text, query, kind and key of the object, name of the object.
_FAILS = (
    '<td class="ll-whole" data-label="{0}"><a id="fails-{3}-{4}" href="?{2}{3}={4}#map">{1}'
    '<span class="visually-hidden">: {5}</span></a></td>'
)
_CELL = '<td data-label="{}">{}</td>'
_NUMBER = '<td class="ll-number" data-label="{}">{}</td>'


@register.simple_tag
def router_rows(rows: Iterable[RouterRow], query: str) -> SafeString:
    """Return the rows of the table of routers.

    ``query``: the parameters to keep in addresses. It is "" or ends with an ampersand.
    """
    site, state, cores, failure = _("Site"), _("State"), _("Cores booked"), _("Failure")
    fails, url = _("If it fails"), _url_of("web:noc-router")
    return format_html_join(
        "\n",
        '<tr><th scope="row"><a href="{}">{}</a></th>' + _CELL * 3 + "{}</tr>",
        (
            (
                url(row.router.pk),
                row.router.name,
                site,
                row.router.site,
                state,
                badge_markup(row.state, row.tone),
                cores,
                core_meter(row.cores) if row.cores else "–",
                format_html(_FAILS, failure, fails, query, "router", row.router.pk, row.router),
            )
            for row in rows
        ),
    )


@register.simple_tag
def link_rows(rows: Iterable[LinkRow], query: str) -> SafeString:
    """Return the rows of the table of links. ``query``: as in ``router_rows``."""
    labels = {
        "state": _("State"),
        "ip_mtu": _("Effective IP MTU"),
        "reported": _("Reported"),
        "verified": _("Verified"),
        "carried": _("Carried now, A to Z / Z to A"),
        "lines": _("Lines over it"),
        "cir": _("CIR sold over it"),
    }
    failure, fails, unknown, unmeasured = _("Failure"), _("If it fails"), _("not known"), _("not measured")
    url = _url_of("web:noc-links-change")
    return format_html_join(
        "\n",
        '<tr><th scope="row"><a href="{}">{}</a></th>' + _CELL + _NUMBER * 6 + "{}</tr>",
        (
            (
                url(row.link.pk),
                row.name,
                labels["state"],
                badge_markup(row.state, row.tone),
                labels["ip_mtu"],
                row.ip_mtu or unknown,
                labels["reported"],
                "–" if row.reported is None else row.reported,
                labels["verified"],
                row.verified_mtu.ip_mtu if row.verified_mtu else "–",
                labels["carried"],
                _traffic(row.traffic) if row.traffic else unmeasured,
                labels["lines"],
                row.load.lines if row.load else "–",
                labels["cir"],
                reader_texts.rate_text(row.load.cir_bps) if row.load else "–",
                format_html(_FAILS, failure, fails, query, "link", row.link.pk, row.name),
            )
            for row in rows
        ),
    )


def _url_of(page: str) -> Callable[[int], str]:
    """Return a function that returns the address for a key. It calls ``reverse`` only once for all rows."""
    before, _zero, after = reverse(page, args=[0]).rpartition("0")
    return lambda pk: f"{before}{pk}{after}"


def _traffic(traffic: LinkTraffic) -> SafeString:
    """Return a link's traffic in each direction, and the load (%) of the busier direction."""
    ways = (traffic.a_to_z_bps, traffic.z_to_a_bps)
    rates = " / ".join("–" if bps is None else reader_texts.measured_text(bps) for bps in ways)
    if not traffic.speed_bps:
        return conditional_escape(rates)
    busier = {"percent": traffic.percent, "speed": reader_texts.rate_text(traffic.speed_bps)}
    return format_html("{} <small>{}</small>", rates, _("%(percent)s %% of %(speed)s") % busier)
