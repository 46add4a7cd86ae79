"""The choice whether PostgreSQL plans a statement once for all values, or for each execution."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse

_READS = ("GET", "HEAD")


class PlanReadsWithValues:
    """For GET and HEAD requests, let PostgreSQL plan each statement with its actual values.

    Other requests use one plan for all values (settings: DATABASE_PREPARE_AFTER). This suits orders, which
    read and write a few rows of any customer. But a page may read three rows for one customer, and half of
    the table for another. With one plan for all routers, the page of a router took ten times as long.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in _READS:
            return self.get_response(request)
        with connection.execute_wrapper(_plan_with_values):
            return self.get_response(request)


def _plan_with_values(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
    session = connection.connection
    before = session.prepare_threshold
    session.prepare_threshold = None
    try:
        return execute(sql, params, many, context)
    finally:
        session.prepare_threshold = before
