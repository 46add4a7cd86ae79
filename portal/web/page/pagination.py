"""Keyset pagination of lists. Every page takes the same time to read, including the last page."""

import base64
import json
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

from django.core.exceptions import FieldError, ValidationError
from django.db.models import Model, Q, QuerySet

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """A page of rows. ``after``: the cursor for ``?after=`` of the next page; "" on the last page."""

    rows: list[Any]
    after: str


def newest_first(rows: QuerySet[Any], *, by: str, after: str) -> Page:
    """Return the page after the cursor ``after``. ``rows`` are ordered by (``-by``, ``-id``).

    ``by``: the name of a column with a time. For an invalid cursor, which only an edited address can contain,
    return the first page.
    """
    rows = rows.order_by(f"-{by}", "-id")
    if place := _read(after, rows.model):
        at, last_id = place
        rows = rows.filter(Q(**{f"{by}__lt": at}) | Q(**{by: at, "id__lt": last_id}))
    found = list(rows[: PAGE_SIZE + 1])
    more = len(found) > PAGE_SIZE
    found = found[:PAGE_SIZE]
    return Page(rows=found, after=f"{getattr(found[-1], by).isoformat()}_{found[-1].pk}" if more else "")


def in_order(rows: QuerySet[Any], *, by: tuple[str, ...], after: str, size: int = PAGE_SIZE) -> Page:
    """Return the page after the cursor ``after``. ``rows`` are ordered by the columns ``by``.

    The columns must never be null, and the last column must be unique. Columns of related rows are written as
    ``router__name``. For an invalid cursor, return the first page.
    """
    rows = rows.order_by(*by)
    if place := _place(after, len(by)):
        rows = _behind(rows, by, place)
    found = list(rows[: size + 1])
    more = len(found) > size
    found = found[:size]
    return Page(rows=found, after=_cursor(found[-1], by) if more else "")


def _behind(rows: QuerySet[Any], by: tuple[str, ...], place: list[Any]) -> QuerySet[Any]:
    beyond = Q()
    for column, value in reversed(list(zip(by, place, strict=True))):
        step = Q(**{f"{column}__gt": value})
        beyond = step | (Q(**{column: value}) & beyond) if beyond else step
    try:
        return rows.filter(beyond)
    except (ValueError, TypeError, ValidationError, FieldError):
        return rows


def _cursor(row: Any, by: tuple[str, ...]) -> str:
    values = [reduce(getattr, column.split("__"), row) for column in by]
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode()


def _place(after: str, length: int) -> list[Any] | None:
    try:
        values = json.loads(base64.urlsafe_b64decode(after))
    except (ValueError, RecursionError):
        return None
    fits = isinstance(values, list) and len(values) == length
    return values if fits and all(_can_be_in_a_column(value) for value in values) else None


def _can_be_in_a_column(value: Any) -> bool:
    """Return whether the value is a number, or a text without NUL and lone surrogates.

    PostgreSQL can store no other text.
    """
    return isinstance(value, str | int) and not any(
        each == "\0" or "\ud800" <= each <= "\udfff" for each in str(value)
    )


def _read(after: str, model: type[Model]) -> tuple[datetime, Any] | None:
    """Return the time and the id in a cursor; None if the cursor is invalid."""
    at, _, last_id = after.partition("_")
    try:
        moment, row = datetime.fromisoformat(at), model._meta.pk.to_python(last_id)
    except (ValueError, ValidationError):
        return None
    return (moment, row) if moment.tzinfo else None
