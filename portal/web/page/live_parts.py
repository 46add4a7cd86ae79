"""Live parts of pages, which htmx requests separately. They are sent only if their content has changed.

``{% livepart %}`` marks a part in a template. The view always renders the whole page. The request of htmx
names the part as its target, and the middleware returns only that part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from portal.web.page.polling import HTTP_NO_CHANGE

# The request header with a digest of the content that the browser shows.
SEEN = "X-Seen"


@dataclass(frozen=True, slots=True)
class LivePart:
    """A live part. ``html``: its HTML, with the surrounding element. ``seen``: a digest of its content."""

    html: str
    seen: str


class LivePartMiddleware:
    """Return only the requested part of the page.

    If the part's content has not changed, return the status HTTP_NO_CHANGE.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not requests_a_part(request):
            return response
        part = live_parts(request).get(request.htmx.target)  # type: ignore[attr-defined]
        if part is None:
            return response
        if request.headers[SEEN] == part.seen:
            return HttpResponse(status=HTTP_NO_CHANGE)
        response.content = part.html
        return response


def requests_a_part(request: Any) -> bool:
    """Return whether htmx sent the request, for a part of a page that the browser already shows."""
    return bool(getattr(request, "htmx", False)) and SEEN in request.headers


def live_parts(request: Any) -> dict[str, LivePart]:
    """Return the live parts of this request's page, by id."""
    parts: dict[str, LivePart] = request.__dict__.setdefault("live_parts", {})
    return parts
