"""Parts of pages that poll. The portal sends such a part again only if the part's content has changed."""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string

HTTP_NO_CHANGE = 204


@dataclass(frozen=True, slots=True)
class PolledPart:
    """A part. ``body``: its HTML. ``seen``: a digest of its content, which the browser sends with each
    poll.
    """

    body: str
    seen: str


def polled_part(template: str, context: dict[str, Any], request: HttpRequest) -> PolledPart:
    """Render a part. The template must not contain values that differ at each request, such as a form
    token.
    """
    body = render_to_string(template, context, request=request)
    return PolledPart(body, digest(body))


def digest(html: str) -> str:
    """Return a short digest of the HTML of a part."""
    return hashlib.sha256(html.encode()).hexdigest()[:16]
