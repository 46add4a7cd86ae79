"""Counts and durations of requests for pages and the API, by route, and of Celery tasks.

A task that is killed (at its hard limit, or with its worker) is counted as begun and never as ended. Begun
minus ended tasks is therefore the number of killed and running tasks.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from celery import Task, signals
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

from portal.metrics.multiprocess import REGISTRY

_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
# The label of requests without a view, for example for static files or unknown addresses.
_NO_ROUTE = "none"

_requests = Counter(
    "longline_http_requests", "Requests answered.", ["view", "method", "status"], registry=REGISTRY
)
_request_durations = Histogram(
    "longline_http_request_duration_seconds",
    "Time from the arrival of a request at Django to the headers of the response.",
    ["view", "method"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
    registry=REGISTRY,
)


class RequestMetricsMiddleware:
    """Count and time each request. It must be the outermost middleware, so that it measures all others.

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
        _request_durations.labels(route, method).observe(perf_counter() - began)
        _requests.labels(route, method, response.status_code).inc()
        return response


_starts = Counter("longline_task_starts", "Tasks that a worker started.", ["task"], registry=REGISTRY)
_ends = Counter(
    "longline_task_ends",
    "Tasks that ended: success, failure, or another of Celery's states in lower case.",
    ["task", "outcome"],
    registry=REGISTRY,
)
_task_durations = Histogram(
    "longline_task_duration_seconds",
    "Duration of tasks.",
    ["task"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 15, 30, 60, 120),
    registry=REGISTRY,
)
_begun: dict[str, float] = {}


@signals.task_prerun.connect(dispatch_uid="longline_task_begins")
def task_begins(task_id: str, task: Task, **_: Any) -> None:  # type: ignore[type-arg]
    _begun[task_id] = perf_counter()
    _starts.labels(task.name).inc()


@signals.task_postrun.connect(dispatch_uid="longline_task_ends")
def task_ended(task_id: str, task: Task, state: str | None = None, **_: Any) -> None:  # type: ignore[type-arg]
    began = _begun.pop(task_id, None)
    if began is not None:
        _task_durations.labels(task.name).observe(perf_counter() - began)
    _ends.labels(task.name, (state or "unknown").lower()).inc()
