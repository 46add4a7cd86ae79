"""Tenant scope: the first thing that every read asks for."""

from typing import Any, Self

from django.db import models
from django.db.models import Q

from portal.core import replica


class TenantQuerySet(models.QuerySet[Any]):
    """A queryset whose rows belong to a customer; subclasses name the path to it."""

    customer_path = "customer"

    def visible_to(self, user: Any) -> Self:
        """The rows this user may see: all for NOC staff, else those of the customers joined."""
        if replica.is_read_now():
            raise RuntimeError("who may see what is asked of the primary, before the rows are read")
        if not user.is_active:
            return self.none()
        if user.is_noc:
            return self
        return self.filter(Q(**{f"{self.customer_path}__memberships__user": user}))

    def confirmed_to(self, user: Any) -> Self:
        """Of rows visible to this user that will be read from a replica, those of customers joined by now.

        The replica may not know yet who has left a customer.
        """
        if user.is_noc:
            return self
        joined = list(user.memberships.values_list("customer", flat=True))
        return self.filter(**{f"{self.customer_path}__in": joined})

    def locked(self) -> Self:
        """These rows, locked until the transaction ends, but not their keys.

        Nobody else changes them meanwhile. What refers to them may be written: PostgreSQL checks that at
        COMMIT, row by row, and would deadlock with whoever locks several.
        """
        return self.select_for_update(of=("self",), no_key=True)
