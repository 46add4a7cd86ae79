"""Template tags for parts of a page that update automatically.

They update immediately through the page's stream, or by polling if there is no stream.
"""

import json
from typing import Any

from django import template
from django.conf import settings
from django.template.base import FilterExpression, NodeList, Parser, Token
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from portal.web.page.live_parts import SEEN, LivePart, PartUnchangedError, digest, live_parts, requested_part

register = template.Library()

# The default interval of polling.
_EVERY = "30s"


@register.simple_tag
def live_script() -> SafeString:
    """Return the script element that opens the page's stream, if a live process runs."""
    return format_html(
        '<script src="{}" data-url="{}" defer></script>', static("js/live.js"), settings.LONGLINE_LIVE_URL
    )


@register.simple_tag
def live(about: str, every: str = _EVERY) -> SafeString:
    """Return the attributes of an element that updates with ``hx-get``.

    ``about``: the topics. The element updates when one of them changes. ``every``: the interval of polling,
    in htmx's notation, while there is no stream. static/js/live.js reads the attributes.
    """
    return format_html('data-live="{}" hx-trigger="live, every {}"', about, every)


@register.tag
def livepart(parser: Parser, token: Token) -> template.Node:
    """Mark a part of a page that updates automatically (portal.web.page.live_parts).

    Example: ``{% livepart "orders" about="lines" every="30s" %}…{% endlivepart %}``. The part is rendered in
    an element with the id ``orders``. It must not contain another live part. Optional parameters:

    * ``every``: the interval of polling without a stream. With "", the part does not update.
    * ``at``: the address to request. By default, it is the address of the page.
    * ``of``: the text whose change is a change of the part. By default, it is the content.
    * ``css``: the class of the element.
    """
    _, part_id, *options = token.split_contents()
    given = {name: parser.compile_filter(value) for name, value in (each.split("=", 1) for each in options)}
    if "about" not in given or given.keys() - {"about", "every", "at", "of", "css"}:
        raise template.TemplateSyntaxError("livepart takes an id, about=, every=, at=, of= and css=")
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
        given = {name: str(value.resolve(context)) for name, value in self.given.items()}
        every, css = given.get("every", _EVERY), given.get("css", "ll-stack")
        # The response to a POST shows a form with errors. A GET of its address would return another page.
        at = given.get("at") or (request.get_full_path() if request.method == "GET" else "")
        attributes = format_html(' class="{}"', css) if css else ""
        body = "" if "of" in given else self.nodelist.render(context)
        # Leave out the token of forms, because it differs at each request.
        content = given.get("of", body).replace(str(context.get("csrf_token", "")), "")
        seen = digest(f"{content}{every}{at}")
        if requested_part(request) == part_id and request.headers[SEEN] == seen:
            raise PartUnchangedError
        if at and every:
            attributes += format_html(
                ' hx-get="{}" hx-swap="outerHTML" hx-headers="{}" {}',
                at,
                json.dumps({SEEN: seen}),
                live(given["about"], every),
            )
        body = body or self.nodelist.render(context)
        html = format_html('<div id="{}"{}>{}</div>', part_id, mark_safe(attributes), mark_safe(body))  # noqa: S308
        live_parts(request)[part_id] = LivePart(html=html, seen=seen)
        return html
