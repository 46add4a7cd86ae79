"""Tenant scope: the first filter of every read."""

from typing import Any, Self

from django.db import models
from django.db.models import Q

from portal.core import replica


class TenantQuerySet(models.QuerySet[Any]):
    """A queryset of rows that belong to a customer; subclasses name the path to the customer."""

    customer_path = "customer"

    def visible_to(self, user: Any) -> Self:
        """Return the rows that this user may see: all for NOC staff, else those of the user's customers."""
        if replica.is_read_now():
            raise RuntimeError("permissions are read from the primary, before the rows are read")
        if not user.is_active:
            return self.none()
        if user.is_noc:
            return self
        return self.filter(Q(**{f"{self.customer_path}__memberships__user": user}))

    def confirmed_to(self, user: Any) -> Self:
        """Narrow rows that are visible to this user to the customers that the user is a member of now.

        Use it for rows from a replica, which may not yet know that a user has left a customer.
        """
        if user.is_noc:
            return self
        joined = list(user.memberships.values_list("customer", flat=True))
        return self.filter(**{f"{self.customer_path}__in": joined})

    def locked(self) -> Self:
        """Return these rows, locked until the transaction ends, but not their keys.

        No other transaction changes the rows meanwhile. Rows that refer to them may be written: PostgreSQL
        checks such references at COMMIT, row by row. A lock on keys would deadlock with transactions that
        lock several.
        """
        return self.select_for_update(of=("self",), no_key=True)
