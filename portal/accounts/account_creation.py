"""Creation of accounts, with the same errors for taken names and addresses everywhere; lookup by address."""

from django.db.models import QuerySet

from portal.accounts.errors import AddressTaken, UsernameTaken
from portal.accounts.models import User
from portal.core.errors import integrity_errors_as


def account_make(
    *, username: str, email: str, password: str | None, noc_role: str = User.NocRole.NONE
) -> User:
    """Create an account.

    ``password``: a password that the caller has validated. If it is None, the user cannot sign in by password
    before choosing one. Raises UsernameTaken or AddressTaken, also for a name or an address that differs only
    in upper and lower case.
    """
    taken = {
        "accounts_user_username_key": lambda: UsernameTaken(username=username),
        "one_user_per_name": lambda: UsernameTaken(username=username),
        "one_user_per_address": lambda: AddressTaken(email=email),
    }
    with integrity_errors_as(taken):
        return User.objects.create_user(username, email=email, password=password, noc_role=noc_role)


def account_at(email: str, *, among: QuerySet[User] | None = None) -> User | None:
    """Return the user with that address; None if there is none. Upper and lower case are not distinguished.

    Python compares the addresses again, because the database's comparison is not exact enough. The database
    treats the letters ı (without a dot) and İ (with a dot) as I, and a domain with such a letter may belong
    to somebody else.
    """
    found = (User.objects.all() if among is None else among).filter(email__iexact=email)
    return next((user for user in found if user.email.lower() == email.lower()), None)
