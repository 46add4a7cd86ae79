"""The customers of a user as a filter with constant ids."""

from django.db.models import Q

from portal.accounts.models import User


def customers_named(user: User) -> Q:
    """Return a filter for the rows of this user's customers, in addition to the tenant scope.

    The filter does not change the result, but makes the query faster. With constant ids, PostgreSQL knows how
    many rows each customer has. It can then read a page in the order of an index, instead of sorting all rows
    that the user may see.
    """
    return Q() if user.is_noc else Q(customer__in=list(user.memberships.values_list("customer", flat=True)))
