"""Counts and durations of requests for pages and the API, by the route of the view."""

from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

from portal.metrics.multiprocess import REGISTRY

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
# The label of requests without a view, for example for static files or unknown addresses.
_NO_ROUTE = "none"

_requests = Counter(
    "longline_http_requests", "Requests answered.", ["view", "method", "status"], registry=REGISTRY
)
_durations = Histogram(
    "longline_http_request_duration_seconds",
    "Time from the arrival of a request at Django to the headers of the response.",
    ["view", "method"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=REGISTRY,
)


class RequestMetricsMiddleware:
    """Count and time each request. This must be the outermost middleware, so that it measures the time of all
    others.

    The time ends when the response object exists. The transfer of the response is not included.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = perf_counter()
        response = self.get_response(request)
        route = request.resolver_match.route if request.resolver_match else _NO_ROUTE
        # Clients may send any text as method. A fixed list limits the number of series.
        method = request.method if request.method in _METHODS else "other"
        _durations.labels(route, method).observe(perf_counter() - began)
        _requests.labels(route, method, response.status_code).inc()
        return response
