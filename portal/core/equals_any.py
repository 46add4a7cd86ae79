"""A lookup of a column by the ids of a subquery, which PostgreSQL runs first."""

from django.db.models import BooleanField, Func


class EqualsAny(Func):
    """The condition ``id = ANY(ARRAY(SELECT ...))``, written ``EqualsAny("pk", ArraySubquery(...))``.

    PostgreSQL treats ``IN (SELECT ...)`` as a join. To find the newest few of some thousand rows, it may then
    read all rows by age.
    """

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()
    conditional = True
