"""Keyset pagination: a page starts after the last row of the previous page. All pages cost the same."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from django.core.exceptions import ValidationError as FieldError
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.utils.urls import replace_query_param

from portal.accounts.language import in_readers_language
from portal.core.whole_number import whole_number

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
        rows = queryset.order_by(*self.ordering)
        if cursor := request.query_params.get(CURSOR):
            rows = rows.filter(_behind(self.ordering, _place(cursor, self.ordering, queryset.model)))
        found = list(rows[: limit + 1])
        self._next = None
        if len(found) > limit:
            found = found[:limit]
            last = _place_of(found[-1], self.ordering)
            self._next = replace_query_param(request.build_absolute_uri(), CURSOR, _cursor(last))
        return found

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
    read: Callable[[Callable[[], list[Row]]], list[Row]] = lambda read_part: read_part(),
) -> Iterator[list[Row]]:
    """Yield all rows in parts of ``at_a_time`` rows. No database cursor stays open for a slow client.

    Each part starts after the key of the last row of the previous part. If a row is created during the
    iteration and sorts before this key, it is left out. ``ordering`` must be a total order. ``read`` calls
    the function that reads a part, for example on a replica.

    Larger parts are not faster. A thread keeps the memory of its largest part: 180 MB for 1,000 lines, and 45
    MB for 200 lines.
    """
    rows = rows.order_by(*ordering)

    def read_part(rows: QuerySet[Row]) -> list[Row]:
        return read(lambda: list(rows[:at_a_time]))

    part = read_part(rows)
    while part:
        yield part
        if len(part) < at_a_time:
            return
        part = read_part(rows.filter(_behind(ordering, _place_of(part[-1], ordering))))


class NewestVllFirst(KeysetPagination):
    ordering = ("-created_at", "-id")


class NewestOrderFirst(KeysetPagination):
    ordering = ("-ordered_at", "-id")


def _place_of(row: Model, ordering: tuple[str, ...]) -> list[Any]:
    return [getattr(row, name.lstrip("-")) for name in ordering]


def _cursor(values: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(values, cls=_Exact).encode()).decode()


class _Exact(JSONEncoder):
    """DRF's encoder, but times have microseconds, because two rows can be less than a millisecond apart."""

    def default(self, obj: Any) -> Any:
        return obj.isoformat() if hasattr(obj, "isoformat") else super().default(obj)


def _place(cursor: str, ordering: tuple[str, ...], model: type[Model]) -> list[Any]:
    """Return the values in a cursor. Raises NotFound if the cursor is not valid."""
    try:
        texts = json.loads(base64.urlsafe_b64decode(cursor))
        fields: list[Any] = [model._meta.get_field(name.lstrip("-")) for name in ordering]
        values = [field.to_python(text) for field, text in zip(fields, texts, strict=True)]
        for field, value in zip(fields, values, strict=True):
            field.run_validators(value)
    except (ValueError, TypeError, OverflowError, RecursionError, FieldError) as error:
        raise NotFound(_("This cursor is not valid. Start again without one.")) from error
    if None in values or not all(getattr(value, "tzinfo", True) for value in values):
        raise NotFound(_("This cursor is not valid. Start again without one."))
    return values


def _behind(ordering: tuple[str, ...], place: list[Any]) -> Q:
    """Return the condition for rows that sort after ``place``.

    For two columns: ``a >= x AND (a > x OR b > y)``. PostgreSQL can use an index on both columns for this
    condition.
    """
    name, *names = ordering
    value, *values = place
    field, sign = name.lstrip("-"), "lt" if name.startswith("-") else "gt"
    beyond = Q(**{f"{field}__{sign}": value})
    if not names:
        return beyond
    return Q(**{f"{field}__{sign}e": value}) & (beyond | _behind(tuple(names), values))
