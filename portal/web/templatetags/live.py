"""What a page's parts need to show changes by themselves: at once by its stream, else by polling."""

import json
from typing import Any

from django import template
from django.conf import settings
from django.template.base import FilterExpression, NodeList, Parser, Token
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from portal.web.live_parts import SEEN, LivePart, live_parts
from portal.web.polling import digest

register = template.Library()

# How often a part looks that nothing tells of changes, unless it says otherwise.
_EVERY = "30s"


@register.simple_tag
def live_script() -> SafeString:
    """The script that opens a page's one stream, where there is a live process."""
    return format_html(
        '<script src="{}" data-url="{}" defer></script>', static("js/live.js"), settings.LONGLINE_LIVE_URL
    )


@register.simple_tag
def live(about: str, every: str = _EVERY) -> SafeString:
    """The attributes of an element that asks for itself (``hx-get``): when a topic of ``about`` changed, and
    every so often while there is no stream. static/js/live.js reads them."""
    return format_html('data-live="{}" hx-trigger="live, every {}"', about, every)


@register.tag
def livepart(parser: Parser, token: Token) -> template.Node:
    """``{% livepart "orders" about="lines" every="30s" %}…{% endlivepart %}``: a part of the page, in an
    element of this id, that shows changes by itself. See portal.web.live_parts; it may hold no other one."""
    _, part_id, *options = token.split_contents()
    given = {name: parser.compile_filter(value) for name, value in (each.split("=", 1) for each in options)}
    if "about" not in given or given.keys() - {"about", "every"}:
        raise template.TemplateSyntaxError("livepart takes an id, about= and every=")
    content = parser.parse(("endlivepart",))
    parser.delete_first_token()
    return _LivePart(parser.compile_filter(part_id), content, given)


class _LivePart(template.Node):
    def __init__(
        self, part_id: FilterExpression, content: NodeList, given: dict[str, FilterExpression]
    ) -> None:
        self.part_id = part_id
        self.nodelist = content
        self.given = given

    def render(self, context: Any) -> str:
        request = context["request"]
        part_id = str(self.part_id.resolve(context))
        asks = {name: str(value.resolve(context)) for name, value in self.given.items()}
        body = self.nodelist.render(context)
        if request.method != "GET":
            # A form that came back with its mistakes: its address shows another page.
            return format_html('<div id="{}" class="ll-stack">{}</div>', part_id, mark_safe(body))  # noqa: S308
        # The token of its forms is another one each time.
        seen = digest(body.replace(str(context.get("csrf_token", "")), ""))
        html = format_html(
            '<div id="{}" class="ll-stack" hx-get="{}" hx-swap="outerHTML" hx-headers="{}" {}>{}</div>',
            part_id,
            request.get_full_path(),
            json.dumps({SEEN: seen}),
            live(**asks),
            mark_safe(body),  # noqa: S308 - rendered by the template itself
        )
        live_parts(request)[part_id] = LivePart(html=html, seen=seen)
        return html
