"""The pages of lists (portal.core.db.row_conditions), and lists that are read in parts."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from portal.accounts.language import in_readers_language
from portal.core.db.row_conditions import CursorInvalid, Page, page_of
from portal.core.quantities import whole_number

CURSOR, LIMIT = "cursor", "limit"
DEFAULT_LIMIT, LARGEST_LIMIT = 50, 200
Row = TypeVar("Row", bound=Model)


class KeysetPagination(BasePagination):
    """Responds with ``{"results": [...], "next": url or null}``.

    ``ordering`` must be a total order: its last field must be unique.
    """

    ordering: tuple[str, ...] = ("id",)
    default_limit = DEFAULT_LIMIT
    largest_limit = LARGEST_LIMIT

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        limit = self._limit(request)
        after = request.query_params.get(CURSOR, "")
        try:
            page = page_of(queryset, self.ordering, after=after, size=limit)
        except CursorInvalid as error:
            raise NotFound(_("This cursor is not valid. Start again without one.")) from error
        here = request.build_absolute_uri()
        self._next = replace_query_param(here, CURSOR, page.after) if page.after else None
        return page.rows

    def _limit(self, request: Request) -> int:
        requested = request.query_params.get(LIMIT, str(self.default_limit))
        limit = whole_number(requested, most=self.largest_limit)
        if not limit:
            with in_readers_language():
                text = gettext("Give a whole number from 1 to %(most)s.")
            refusal = text % {"most": self.largest_limit}
            raise ValidationError({LIMIT: [refusal]}, code="limit")
        return limit

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data, "next": self._next})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": ["results", "next"],
            "properties": {
                "results": schema,
                "next": {
                    "type": ["string", "null"],
                    "format": "uri",
                    "description": "The address of the next page; null on the last page.",
                },
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": CURSOR,
                "in": "query",
                "description": "The start of the page. Use the address in `next` unchanged.",
                "schema": {"type": "string", "minLength": 1},
            },
            {
                "name": LIMIT,
                "in": "query",
                "description": "The maximum number of results.",
                "schema": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": self.largest_limit,
                    "default": self.default_limit,
                },
            },
        ]


def parts_of(
    rows: QuerySet[Row],
    ordering: tuple[str, ...],
    *,
    at_a_time: int = LARGEST_LIMIT,
    read: Callable[[Callable[[], Page]], Page] = lambda read_part: read_part(),
) -> Iterator[list[Row]]:
    """Yield all rows in parts of ``at_a_time`` rows. No database cursor stays open for a slow client.

    Each part starts after the key of the last row of the previous part. If a row is created during the
    iteration and sorts before this key, it is left out. ``ordering`` must be a total order. ``read`` calls
    the function that reads a part, for example on a replica.

    Larger parts are not faster. A thread keeps the memory of its largest part: 180 MB for 1,000 lines, and 45
    MB for 200 lines.
    """
    after = ""
    while True:
        page = read(partial(page_of, rows, ordering, after=after, size=at_a_time))
        if page.rows:
            yield page.rows
        if not page.after:
            return
        after = page.after


class NewestVllFirst(KeysetPagination):
    ordering = ("-created_at", "-id")


class NewestOrderFirst(KeysetPagination):
    ordering = ("-ordered_at", "-id")
