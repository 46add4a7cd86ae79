"""Live parts of pages, which htmx requests separately. They are sent only if their content has changed.

``{% livepart %}`` marks a part in a template. A request of htmx names the part as its target and the content
that the browser shows. The view renders the page, or only a template with the part. If the content is the
same, the tag stops the rendering, and the status is HTTP_NO_CHANGE. From a whole page, the middleware returns
only the part.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from django import template
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.base import FilterExpression, NodeList, Parser, Token
from django.templatetags.static import static
from django.utils.deprecation import MiddlewareMixin
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from portal.accounts import permissions
from portal.live.topics import BadTopics, Followed, UnknownLine, follow
from portal.web.page.base import SignedInRequest, requires
from portal.web.page.components import class_attribute, read_arguments

HTTP_NO_CHANGE = 204
# The request header with a digest of the content that the browser shows.
SEEN = "X-Seen"
_WHOLE_PAGE = b"<!doctype"


class PartUnchangedError(Exception):
    """The browser already shows the requested part with the same content."""


@dataclass(frozen=True, slots=True)
class LivePart:
    """A live part. ``html``: its HTML, with the surrounding element. ``seen``: a digest of its content."""

    html: str
    seen: str


class LivePartMiddleware(MiddlewareMixin):
    """Return only the requested part of a page, and nothing if the part's content has not changed."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        part = live_parts(request).get(requested_part(request))
        if part is not None and response.content.lstrip()[:9].lower() == _WHOLE_PAGE:
            response.content = part.html
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        unchanged = isinstance(exception, PartUnchangedError)
        return HttpResponse(status=HTTP_NO_CHANGE) if unchanged else None


def requested_part(request: Any) -> str:
    """Return the id of the part that htmx requests for a page that the browser already shows; "" if none."""
    by_htmx = request.method == "GET" and getattr(request, "htmx", False) and SEEN in request.headers
    return str(request.htmx.target or "") if by_htmx else ""


def live_parts(request: Any) -> dict[str, LivePart]:
    """Return the live parts of this request's page, by id."""
    parts: dict[str, LivePart] = request.__dict__.setdefault("live_parts", {})
    return parts


def digest(html: str) -> str:
    """Return a short digest of the HTML of a part."""
    return hashlib.sha256(html.encode()).hexdigest()[:16]


register = template.Library()

# The default interval of polling.
_EVERY = "30s"


@register.simple_tag
def live_script() -> SafeString:
    """Return the script element that opens the page's stream, if a live process runs."""
    return format_html(
        '<script src="{}" data-url="{}" defer></script>', static("js/live.js"), settings.LONGLINE_LIVE_URL
    )


@register.tag
def livepart(parser: Parser, token: Token) -> template.Node:
    """Mark a part of a page that updates automatically (portal.web.page.live).

    Example: ``{% livepart "orders" about="lines" every="30s" %}…{% endlivepart %}``. The part is rendered in
    an element with the id ``orders``. It must not contain another live part. Optional parameters:

    * ``every``: the interval of polling without a stream, in htmx's notation. With "", the part does not
      update.
    * ``at``: the address to request. By default, it is the address of the page.
    * ``of``: the text whose change is a change of the part. By default, it is the content.
    * ``css``: the class of the element.
    * ``tag``: the name of the element. By default, it is ``div``.
    """
    (part_id,), given = read_arguments(parser, token, "about", "every", "at", "of", "css", "tag")
    if "about" not in given:
        raise template.TemplateSyntaxError("livepart needs about=, the topics of the part")
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
        attributes = class_attribute(css)
        body = "" if "of" in given else self.nodelist.render(context)
        # Leave out the token of forms, because it differs at each request.
        content = given.get("of", body).replace(str(context.get("csrf_token", "")), "")
        seen = digest(f"{content}{every}{at}")
        if requested_part(request) == part_id and request.headers[SEEN] == seen:
            raise PartUnchangedError
        if at and every:
            attributes += format_html(
                ' hx-get="{}" hx-swap="outerHTML" hx-headers="{}" data-live="{}" hx-trigger="live, every {}"',
                at,
                json.dumps({SEEN: seen}),
                given["about"],
                every,
            )
        body = body or self.nodelist.render(context)
        tag = given.get("tag", "div")
        html = f'<{tag} id="{conditional_escape(part_id)}"{attributes}>{body}</{tag}>'
        live_parts(request)[part_id] = LivePart(html=html, seen=seen)
        return html


class Following(HttpResponse):
    """A response with the topics that a page follows.

    The live process reads ``followed`` and ``user_id``, and sends a stream instead. If a web process sends
    the response, the status 204 ends the browser's EventSource permanently, and the page polls.
    """

    status_code = 204

    def __init__(self, *, followed: Followed, user_id: int) -> None:
        super().__init__()
        self.followed = followed
        self.user_id = user_id


@requires(permissions.may_sign_in)
def live(request: SignedInRequest) -> HttpResponse:
    """Check the topics in ``?about=``, which occurs once for each topic.

    The status is 400 if the topics are not valid, and 404 if the user may not see one of the lines.
    """
    try:
        followed = follow(request.user, request.GET.getlist("about"))
    except BadTopics as reason:
        return HttpResponse(f"{reason}\n", status=400, content_type="text/plain; charset=utf-8")
    except UnknownLine:
        raise Http404 from None
    return Following(followed=followed, user_id=request.user.pk)
