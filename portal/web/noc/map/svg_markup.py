"""A drawing as SVG. Python renders it without a template, because it may have thousands of elements."""

from collections.abc import Iterator

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from portal.web.noc.map.svg_map import Box, Drawing, Line, Text


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
