"""Parts of pages that are sent alone when the browser asks for them, and only when they say something else.

``{% livepart %}`` marks one in a template. Its page is rendered as always; who asked for the part alone,
which htmx says by the id of its target, gets the part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from portal.web.polling import HTTP_NO_CHANGE

# A digest of what the browser shows already.
SEEN = "X-Seen"


@dataclass(frozen=True, slots=True)
class LivePart:
    """``html``: with the element around it; ``seen``: a digest to recognise it by."""

    html: str
    seen: str


class LivePartMiddleware:
    """Answers with the part alone, or with 204 where nothing in it has changed."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not asks_for_a_part(request):
            return response
        part = live_parts(request).get(request.htmx.target)  # type: ignore[attr-defined]
        if part is None:
            return response
        if request.headers[SEEN] == part.seen:
            return HttpResponse(status=HTTP_NO_CHANGE)
        response.content = part.html
        return response


def asks_for_a_part(request: Any) -> bool:
    """Whether htmx asks for a part of a page that it shows already."""
    return bool(getattr(request, "htmx", False)) and SEEN in request.headers


def live_parts(request: Any) -> dict[str, LivePart]:
    """The parts that this request's page was found to have, by their ids."""
    parts: dict[str, LivePart] = request.__dict__.setdefault("live_parts", {})
    return parts
