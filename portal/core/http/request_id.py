"""An id for each request. Error responses, events and log records of the request contain it."""

import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")
current_request_id: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdMiddleware:
    """Use the caller's ``X-Request-Id`` if it is well formed, or generate an id. The response contains it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _ACCEPTABLE.match(given) else uuid.uuid4().hex
        token = current_request_id.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            current_request_id.reset(token)
        response["X-Request-Id"] = request_id
        return response
