"""PostgreSQL's choice of when to plan a statement: once for all values, or anew for those at hand."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse

_READS = ("GET", "HEAD")


class ReadsPlannedAnew:
    """Statements of a request that only reads are planned with their values.

    One plan for all values (settings: DATABASE_PREPARE_AFTER) suits an order, which touches a few rows
    whoever orders. What a page reads may be three rows of one customer and half of the table of another: a
    router's page took ten times as long with a plan for the average router.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _READS:
            return self.get_response(request)
        with connection.execute_wrapper(_planned_anew):
            return self.get_response(request)


def _planned_anew(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
    session = connection.connection
    before = session.prepare_threshold
    session.prepare_threshold = None
    try:
        return execute(sql, params, many, context)
    finally:
        session.prepare_threshold = before
