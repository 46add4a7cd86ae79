"""RFC 9457 answers of the agent door."""

import sys
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, JsonResponse

_URN = "urn:longline:error:"


def problem(status: int, code: str, title: str, detail: str, **members: Any) -> JsonResponse:
    """A problem document; ``code`` becomes its type URN."""
    content = {"type": f"{_URN}{code}", "title": title, "status": status, "detail": detail, **members}
    return JsonResponse(content, status=status, content_type="application/problem+json")


def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """handler404 of this door."""
    return problem(404, "not-found", "There is nothing here", f"{request.path} is not a path of this door")


def server_error(request: HttpRequest) -> JsonResponse:
    """handler500 of this door, or 503 without a database: the agent keeps its report and sends it again."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return problem(503, "unavailable", "The database is away", "keep the report and send it again")
    return problem(500, "internal", "The portal failed", "keep the report and send it again")
