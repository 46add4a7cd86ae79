"""The drawing and the tables of the map. Python renders them: templates are too slow for so many elements."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from portal.core import reader_texts
from portal.inventory.queries import LinkTraffic
from portal.web.noc.map.network_map import LinkRow, RouterRow
from portal.web.noc.map.svg_map import Box, Drawing, Line, Text
from portal.web.page.badges import badge_markup, core_meter


def drawing_markup(drawing: Drawing) -> SafeString:
    """Return the SVG of a drawing.

    Routers and links can be selected with a pointer. Keyboards and screen readers ignore the drawing, because
    tables contain the same addresses. From back to front, the drawing has marks, links, texts and routers.
    """
    return format_html(
        '<svg class="ll-draw ll-draw-{}{}" viewBox="{}" width="{}" height="{}" aria-hidden="true"'
        ' focusable="false">{}</svg>',
        drawing.size,
        " ll-draw-compact" if drawing.compact else "",
        drawing.view_box,
        str(drawing.width),
        str(drawing.height),
        mark_safe("\n".join(_parts(drawing))),  # noqa: S308 - each is safe
    )


def _parts(drawing: Drawing) -> Iterator[SafeString]:
    if drawing.unlocated:
        yield format_html('<rect class="ll-draw-unlocated" {} rx="6" />', drawing.unlocated_geometry)
    for line in drawing.lines:
        if mark := line.join.mark:
            yield format_html('<path class="ll-draw-mark ll-draw-mark-{}" d="{}" />', mark, line.path)
    for line in drawing.lines:
        yield _linked(line.join.href, _link(line))
    if drawing.unlocated:
        title = _("Sites without coordinates")
        yield format_html('<text class="ll-draw-note" {}>{}</text>', drawing.unlocated_title_at, title)
    for caption in drawing.captions:
        yield format_html('<text class="ll-draw-site" {}>{}</text>', caption.at, caption.text)
    for line in drawing.lines:
        if texts := line.texts:
            yield format_html('<g class="ll-draw-label ll-draw-{}">{}</g>', line.join.tone, _texts(texts))
    for box in drawing.boxes:
        yield _linked(box.point.href, _router(box))


def _link(line: Line) -> SafeString:
    hit = format_html('<path class="ll-draw-hit" d="{}" />', line.path) if line.join.href else ""
    halves = format_html_join(
        "",
        '<path{} d="{}" />',
        (
            (format_html(' class="ll-draw-use ll-use-{}"', half.level) if half.level else "", half.path)
            for half in line.halves
        ),
    )
    return format_html(
        '<g class="ll-draw-line ll-draw-{}"><title>{}</title>{}{}</g>',
        line.join.tone,
        line.join.title,
        hit,
        halves,
    )


def _router(box: Box) -> SafeString:
    return format_html(
        '<g class="ll-draw-box ll-draw-{}{}"><title>{}</title><rect {} rx="4" />'
        '<text class="ll-draw-name" {}>{}</text>{}</g>',
        box.point.tone,
        f" ll-draw-{box.point.mark}" if box.point.mark else "",
        box.point.title or box.point.name,
        box.geometry,
        box.label_at,
        box.label,
        _texts([Text(box.note, box.note_at)]) if box.note else "",
    )


def _texts(texts: list[Text]) -> SafeString:
    return format_html_join("", "<text {}>{}</text>", ((text.at, text.text) for text in texts))


def _linked(href: str, inside: SafeString) -> SafeString:
    return format_html('<a href="{}" tabindex="-1">{}</a>', href, inside) if href else inside


register = template.Library()
register.simple_tag(drawing_markup)


# The arguments: label of the column, text, query, kind and key of the object, name of the object.
_FAILS = (
    '<td class="ll-whole" data-label="{0}"><a id="fails-{3}-{4}" href="?{2}{3}={4}#map">{1}'
    '<span class="visually-hidden">: {5}</span></a></td>'
)
_CELL, _NUMBER = '<td data-label="{}">{}</td>', '<td class="ll-number" data-label="{}">{}</td>'
_HEAD, _NUMBER_HEAD = '<th scope="col">{}</th>', '<th scope="col" class="ll-number">{}</th>'


def _table(heads: str, labels: Iterable[str], cells: str, rows: Iterable[tuple[Any, ...]]) -> SafeString:
    """Return the head and the rows of a table. The first cell of a row has its address and its name."""
    row = '<tr><th scope="row"><a href="{}">{}</a></th>' + cells + "{}</tr>"
    head, body = format_html(heads, *labels), format_html_join("\n", row, rows)
    return format_html("<thead><tr>{}</tr></thead><tbody>{}</tbody>", head, body)


@register.simple_tag
def router_table(rows: Iterable[RouterRow], query: str) -> SafeString:
    """Return the table of routers.

    ``query``: the parameters to keep in addresses. It is "" or ends with an ampersand.
    """
    site, state, cores, failure = _("Site"), _("State"), _("Cores booked"), _("Failure")
    fails, url = _("If it fails"), _url_of("web:noc-router")
    cells = (
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
    )
    return _table(_HEAD * 5, (_("Router"), site, state, cores, failure), _CELL * 3, cells)


@register.simple_tag
def link_table(rows: Iterable[LinkRow], query: str) -> SafeString:
    """Return the table of links. ``query``: as in ``router_table``."""
    state, ip_mtu, reported, verified = _("State"), _("Effective IP MTU"), _("Reported"), _("Verified")
    carried, lines, cir = _("Carried now, A to Z / Z to A"), _("Lines over it"), _("CIR sold over it")
    failure, fails, unknown, unmeasured = _("Failure"), _("If it fails"), _("not known"), _("not measured")
    url = _url_of("web:noc-links-change")
    cells = (
        (
            url(row.link.pk),
            row.name,
            state,
            badge_markup(row.state, row.tone),
            ip_mtu,
            row.ip_mtu or unknown,
            reported,
            "–" if row.reported is None else row.reported,
            verified,
            row.verified_mtu.ip_mtu if row.verified_mtu else "–",
            carried,
            _traffic(row.traffic) if row.traffic else unmeasured,
            lines,
            row.load.lines if row.load else "–",
            cir,
            reader_texts.rate_text(row.load.cir_bps) if row.load else "–",
            format_html(_FAILS, failure, fails, query, "link", row.link.pk, row.name),
        )
        for row in rows
    )
    labels = (_("Link"), state, ip_mtu, reported, verified, carried, lines, cir, failure)
    return _table(_HEAD * 2 + _NUMBER_HEAD * 6 + _HEAD, labels, _CELL + _NUMBER * 6, cells)


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
