"""An id and a log record for each request.

Error responses, events and log records of the request contain the id.
"""

import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from time import perf_counter

from django.http import HttpRequest, HttpResponse

log = logging.getLogger("longline.request")

_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")
# Monitoring systems request these every few seconds. Only failures are logged.
_PROBES = frozenset({"/healthz", "/readyz"})
current_request_id: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdMiddleware:
    """Give each request an id, return the id in ``X-Request-Id``, and log the request.

    The id is the caller's ``X-Request-Id`` if it is well formed; otherwise it is generated. The log record
    has no query string, which may contain text that people typed.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _ACCEPTABLE.match(given) else uuid.uuid4().hex
        token = current_request_id.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            current_request_id.reset(token)
        response["X-Request-Id"] = request_id
        if request.path not in _PROBES or response.status_code >= 400:
            log.info(
                "request",
                extra={
                    "method": request.method,
                    "path": request.path,
                    "status": response.status_code,
                    "duration_s": round(perf_counter() - began, 6),
                    "request_id": request_id,
                },
            )
        return response
