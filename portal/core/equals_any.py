"""A condition that a column equals any id of a subquery. PostgreSQL runs the subquery first."""

from django.db.models import BooleanField, Func


class EqualsAny(Func):
    """The condition ``id = ANY(ARRAY(SELECT ...))``, written ``EqualsAny("pk", ArraySubquery(...))``.

    PostgreSQL treats ``IN (SELECT ...)`` as a join instead. To find the newest few of some thousand rows, it
    may then read the whole table in order of age.
    """

    template = "%(expressions)s)"
    arg_joiner = " = ANY("
    output_field = BooleanField()
    conditional = True
