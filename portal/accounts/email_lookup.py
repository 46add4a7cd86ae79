"""Lookup of a user by an e-mail address, which identifies the user."""

from django.db.models import QuerySet

from portal.accounts.models import User


def account_at(email: str, *, among: QuerySet[User] | None = None) -> User | None:
    """Return the user with that address; the case of letters is ignored.

    The comparison of the database only narrows the candidates. It treats a dotless ı and a dotted İ as I, and
    domains with these letters may belong to somebody else.
    """
    found = (User.objects.all() if among is None else among).filter(email__iexact=email)
    return next((user for user in found if user.email.lower() == email.lower()), None)
