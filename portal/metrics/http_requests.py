"""Counts and times the requests for pages and API, by the route of the view that answered."""

from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

from portal.metrics.multiprocess import REGISTRY

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
# No view: static files, and addresses that do not exist.
_NO_ROUTE = "none"

_requests = Counter(
    "longline_http_requests", "Requests answered.", ["view", "method", "status"], registry=REGISTRY
)
_durations = Histogram(
    "longline_http_request_duration_seconds",
    "Time from a request's arrival at Django to its answer's headers.",
    ["view", "method"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=REGISTRY,
)


class RequestMetricsMiddleware:
    """Outermost, so that all of an answer's making is timed."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        response = self.get_response(request)
        route = request.resolver_match.route if request.resolver_match else _NO_ROUTE
        # Whoever asks may write any method; labels are of our choice.
        method = request.method if request.method in _METHODS else "other"
        _durations.labels(route, method).observe(perf_counter() - began)
        _requests.labels(route, method, response.status_code).inc()
        return response
