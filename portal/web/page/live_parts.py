"""Live parts of pages, which htmx requests separately. They are sent only if their content has changed.

``{% livepart %}`` marks a part in a template. A request of htmx names the part as its target and the content
that the browser shows. The view renders the page, or only a template with the part. If the content is the
same, the tag stops the rendering, and the status is HTTP_NO_CHANGE. From a whole page, the middleware returns
only the part.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

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


class LivePartMiddleware:
    """Return only the requested part of a page, and nothing if the part's content has not changed."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
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
