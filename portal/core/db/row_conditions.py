"""Conditions on rows: the tenant scope (the first filter of all queries for a user), value lists, pages.

With keyset pagination, a page starts after the last row of the previous page, so all pages cost the same. An
ordering is a tuple of columns as in ``order_by``. It must be a total order: its columns are never null, and
its last column is unique. Columns of related rows are written as ``router__name``.
"""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import BooleanField, Field, Func, Q, QuerySet, Value

from portal.core.db import replica


class TenantQuerySet(models.QuerySet[Any]):
    """A queryset of rows that belong to a customer. Subclasses set ``customer_path``, the lookup to it."""

    customer_path = "customer"

    def visible_to(self, user: Any) -> Self:
        """Return the rows that this user may see: all for NOC staff, else those of the user's customers.

        Inactive users may see no rows. Raises RuntimeError while the thread reads from the replica.
        """
        if replica.is_read_now():
            raise RuntimeError("permissions are read from the primary, before the rows are read")
        if not user.is_active:
            return self.none()
        if user.is_noc:
            return self
        return self.filter(Q(**{f"{self.customer_path}__memberships__user": user}))

    def confirmed_to(self, user: Any) -> Self:
        """Return only rows of customers that the user is a member of now. NOC staff get all rows.

        Use it for rows from a replica. The replica may not know yet that a user has left a customer.
        """
        if user.is_noc:
            return self
        joined = list(user.memberships.values_list("customer", flat=True))
        return self.filter(**{f"{self.customer_path}__in": joined})

    def locked(self) -> Self:
        """Return these rows, locked until the transaction ends (FOR NO KEY UPDATE).

        Other transactions cannot change the rows, but can write rows that refer to them. PostgreSQL checks
        such references at COMMIT, and locks the keys one by one. A lock on keys would therefore deadlock with
        transactions that lock several rows.
        """
        return self.select_for_update(of=("self",), no_key=True)


class EqualsAny(Func):
    """The condition ``id = ANY(ARRAY(SELECT ...))``, written ``EqualsAny("pk", ArraySubquery(...))``.

    PostgreSQL treats ``IN (SELECT ...)`` as a join instead. To find the newest few of some thousand rows, it
    may then read the whole table in order of age.
    """

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()
    conditional = True


def is_one_of(column: str, values: Iterable[Any], kind: "Field[Any, Any]") -> Q:
    """Return the condition that the column, of this kind, has one of the values.

    All values are one parameter, so Django and psycopg process the same short text for any number of values.
    ``__in`` has a parameter per value, and PostgreSQL accepts at most 65,535 parameters.
    """
    return Q(EqualsAny(column, Value(list(values), output_field=ArrayField(kind))))


@dataclass(frozen=True, slots=True)
class Page:
    """A page of rows. ``after``: the cursor of the next page; "" on the last page."""

    rows: list[Any]
    after: str


class CursorInvalid(ValueError):
    """The portal did not write this cursor: somebody has edited the address."""


def page_of(rows: QuerySet[Any], ordering: Sequence[str], *, after: str, size: int) -> Page:
    """Return the page after the cursor ``after``; "" returns the first page. Raises CursorInvalid."""
    rows = rows.order_by(*ordering)
    if after:
        rows = rows.filter(_behind(ordering, _place(after, ordering, rows)))
    found = list(rows[: size + 1])
    is_last = len(found) <= size
    found = found[:size]
    return Page(found, after="" if is_last else written(_place_of(found[-1], ordering)))


def written(place: Any) -> str:
    """Return a cursor, the text of a place in a list."""
    # The time of a row has microseconds, because two rows can be less than a millisecond apart.
    text = json.dumps(place, default=lambda value: getattr(value, "isoformat", value.__str__)())
    return base64.urlsafe_b64encode(text.encode()).decode()


def read(cursor: str) -> Any:
    """Return the place in a cursor. Raises CursorInvalid if the cursor is not base64 of JSON."""
    try:
        return json.loads(base64.urlsafe_b64decode(cursor))
    except (ValueError, RecursionError) as error:
        raise CursorInvalid from error


def _place_of(row: Any, ordering: Sequence[str]) -> list[Any]:
    return [reduce(getattr, column.lstrip("-").split("__"), row) for column in ordering]


def _place(cursor: str, ordering: Sequence[str], rows: QuerySet[Any]) -> list[Any]:
    """Return the values in a cursor. Raises CursorInvalid if a column cannot have the value."""
    try:
        fields = [_field(rows, column.lstrip("-")) for column in ordering]
        values = [field.to_python(value) for field, value in zip(fields, read(cursor), strict=True)]
        for field, value in zip(fields, values, strict=True):
            if not isinstance(value, str):
                field.run_validators(value)
    except (ValueError, TypeError, OverflowError, ValidationError) as error:
        raise CursorInvalid from error
    if not all(_can_be_in_a_column(value) for value in values):
        raise CursorInvalid
    return values


def _field(rows: QuerySet[Any], column: str) -> Any:
    if column in rows.query.annotations:
        return rows.query.annotations[column].output_field
    *relations, name = column.split("__")
    options: Any = rows.model._meta
    for relation in relations:
        options = options.get_field(relation).related_model._meta
    return options.pk if name == "pk" else options.get_field(name)


def _can_be_in_a_column(value: Any) -> bool:
    """Return whether PostgreSQL can compare a column with the value.

    A text must not contain NUL or lone surrogates, and a time must have a zone.
    """
    if isinstance(value, str):
        return not any(each == "\0" or "\ud800" <= each <= "\udfff" for each in value)
    return value is not None and bool(getattr(value, "tzinfo", True))


def _behind(ordering: Sequence[str], place: Sequence[Any]) -> Q:
    """Return the condition for rows that sort after ``place``.

    For two columns: ``a >= x AND (a > x OR b > y)``, for which PostgreSQL can use an index on both.
    """
    name, *names = ordering
    value, *values = place
    column, sign = name.lstrip("-"), "lt" if name.startswith("-") else "gt"
    beyond = Q(**{f"{column}__{sign}": value})
    if not names:
        return beyond
    return Q(**{f"{column}__{sign}e": value}) & (beyond | _behind(names, values))
