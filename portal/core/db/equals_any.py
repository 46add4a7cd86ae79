"""Conditions that a column equals any value of an array, which a subquery or the caller supplies."""

from collections.abc import Iterable
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, Field, Func, Q, Value


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
