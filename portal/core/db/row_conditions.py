"""Conditions on rows: the tenant scope, the first filter of every query for a user; and lists of values."""

from collections.abc import Iterable
from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import BooleanField, Field, Func, Q, Value

from portal.core.db import replica


class TenantQuerySet(models.QuerySet[Any]):
    """A queryset of rows that belong to a customer. Subclasses set ``customer_path``, the lookup to it."""

    customer_path = "customer"

    def visible_to(self, user: Any) -> Self:
        """Return the rows that this user may see: all rows for NOC staff, else the rows of the user's
        customers.

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
