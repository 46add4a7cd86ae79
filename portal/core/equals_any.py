"""A column that is looked up by the ids of a subquery, which PostgreSQL runs first."""

from django.db.models import BooleanField, Func


class EqualsAny(Func):
    """``EqualsAny("pk", ArraySubquery(...))``: ``id = ANY(ARRAY(SELECT ...))``.

    ``IN (SELECT ...)`` is a join to PostgreSQL: for the newest few of some thousands it may walk through all
    rows by age instead.
    """

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()
    conditional = True
