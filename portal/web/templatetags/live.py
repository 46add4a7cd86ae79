"""Tags for parts of a page that update automatically: immediately through its stream, else by polling."""

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

# The default polling interval of a part without topics.
_EVERY = "30s"


@register.simple_tag
def live_script() -> SafeString:
    """Return the script that opens the page's stream, where a live process runs."""
    return format_html(
        '<script src="{}" data-url="{}" defer></script>', static("js/live.js"), settings.LONGLINE_LIVE_URL
    )


@register.simple_tag
def live(about: str, every: str = _EVERY) -> SafeString:
    """Return the attributes of an element that updates with ``hx-get``.

    It updates when a topic of ``about`` changes, and every ``every`` while there is no stream.
    static/js/live.js reads the attributes.
    """
    return format_html('data-live="{}" hx-trigger="live, every {}"', about, every)


@register.tag
def livepart(parser: Parser, token: Token) -> template.Node:
    """``{% livepart "orders" about="lines" every="30s" %}…{% endlivepart %}`` marks a part that updates
    automatically.

    The part gets an element with this id (portal.web.live_parts). It must not contain another live part.
    """
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
        parameters = {name: str(value.resolve(context)) for name, value in self.given.items()}
        body = self.nodelist.render(context)
        if request.method != "GET":
            # A form that was returned with errors: a GET of its address shows another page.
            return format_html('<div id="{}" class="ll-stack">{}</div>', part_id, mark_safe(body))  # noqa: S308
        # The token of its forms differs each time.
        seen = digest(body.replace(str(context.get("csrf_token", "")), ""))
        html = format_html(
            '<div id="{}" class="ll-stack" hx-get="{}" hx-swap="outerHTML" hx-headers="{}" {}>{}</div>',
            part_id,
            request.get_full_path(),
            json.dumps({SEEN: seen}),
            live(**parameters),
            mark_safe(body),  # noqa: S308 - rendered by the template itself
        )
        live_parts(request)[part_id] = LivePart(html=html, seen=seen)
        return html
