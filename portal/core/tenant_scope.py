"""Tenant scope: the first thing that every read asks for."""

from typing import Any, Self

from django.db import models
from django.db.models import Q

from portal.core import replica


class TenantQuerySet(models.QuerySet[Any]):
    """A queryset whose rows belong to a customer; subclasses name the path to it."""

    customer_path = "customer"

    def visible_to(self, user: Any) -> Self:
        """The rows this user may see: all for NOC staff, else those of the customers joined.

        Whose customer that is is never asked of a replica: where there is one, the rows may be read from it.
        """
        if not user.is_active:
            return self.none()
        if user.is_noc:
            return self
        if not replica.exists():
            return self.filter(Q(**{f"{self.customer_path}__memberships__user": user}))
        if replica.is_read_now():
            raise RuntimeError("the reader's customers are asked of the primary, before the rows are read")
        customers = list(user.memberships.values_list("customer", flat=True))
        return self.filter(**{f"{self.customer_path}__in": customers})

    def locked(self) -> Self:
        """These rows, locked until the transaction ends, but not their keys.

        Nobody else changes them meanwhile. What refers to them may be written: PostgreSQL checks that at
        COMMIT, row by row, and would deadlock with whoever locks several.
        """
        return self.select_for_update(of=("self",), no_key=True)
