"""One log record for each request: method, path, status, duration and request id."""

import logging
from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse

log = logging.getLogger("longline.request")

# Monitoring systems request these every few seconds. Only failures are logged.
_PROBES = frozenset({"/healthz", "/readyz"})


class RequestLogMiddleware:
    """Log each request, but not its query string, which may contain text that people typed.

    The setting MIDDLEWARE must list it before RequestIdMiddleware, which sets the id.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        response = self.get_response(request)
        if request.path in _PROBES and response.status_code < 400:
            return response
        log.info(
            "request",
            extra={
                "method": request.method,
                "path": request.path,
                "status": response.status_code,
                "duration_s": round(perf_counter() - began, 6),
                "request_id": response.get("X-Request-Id", ""),
            },
        )
        return response
