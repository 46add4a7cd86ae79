"""Lookup of the user who has an e-mail address."""

from django.db.models import QuerySet

from portal.accounts.models import User


def account_at(email: str, *, among: QuerySet[User] | None = None) -> User | None:
    """Return the user with that address; None if there is none. Upper and lower case are not distinguished.

    Python compares the addresses again, because the database's comparison is not exact enough. The database
    treats the letters ı (without a dot) and İ (with a dot) as I, and a domain with such a letter may belong
    to somebody else.
    """
    found = (User.objects.all() if among is None else among).filter(email__iexact=email)
    return next((user for user in found if user.email.lower() == email.lower()), None)
