"""When PostgreSQL plans a statement: once for all values, or for each execution."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse

_READS = ("GET", "HEAD")


class PlanReadsWithValues:
    """Plan the statements of requests that only read with their actual values.

    One plan for all values (settings: DATABASE_PREPARE_AFTER) suits an order, which touches a few rows of any
    customer. A page may read three rows of one customer and half of the table of another. The page of a
    router took ten times as long with a plan for the average router.
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
