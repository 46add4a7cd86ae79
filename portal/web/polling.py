"""Parts of pages that ask for themselves: sent again only when they say something else."""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string

HTTP_NO_CHANGE = 204


@dataclass(frozen=True, slots=True)
class PolledPart:
    """``body``: the rendered part; ``seen``: a digest to recognise it by, which the browser sends back."""

    body: str
    seen: str


def polled_part(template: str, context: dict[str, Any], request: HttpRequest) -> PolledPart:
    """The template must have nothing that differs each time, such as a form's token."""
    body = render_to_string(template, context, request=request)
    return PolledPart(body, digest(body))


def digest(html: str) -> str:
    """Of a part: short, and another one whenever the part says something else."""
    return hashlib.sha256(html.encode()).hexdigest()[:16]
