"""Finding somebody by an e-mail address, which proves who they are."""

from django.db.models import QuerySet

from portal.accounts.models import User


def account_at(email: str, *, among: QuerySet[User] | None = None) -> User | None:
    """The user with that address, however written in upper and lower case.

    The database's comparison only narrows: it makes an I of a dotless ı and of a dotted İ, with which domains
    of other people are registered.
    """
    found = (User.objects.all() if among is None else among).filter(email__iexact=email)
    return next((user for user in found if user.email.lower() == email.lower()), None)
