"""Making an account. Whoever makes one is refused a taken name or address in the same words."""

from portal.accounts.errors import AddressTaken, UsernameTaken
from portal.accounts.models import User
from portal.core.integrity_errors import integrity_errors_as


def account_make(
    *, username: str, email: str, password: str | None, noc_role: str = User.NocRole.NONE
) -> User:
    """``password`` has passed the validators; with None, nobody signs in by password until one is chosen.

    Raises UsernameTaken, AddressTaken: a name or address that differs in case alone is the same.
    """
    taken = {
        "accounts_user_username_key": lambda: UsernameTaken(username=username),
        "one_user_per_name": lambda: UsernameTaken(username=username),
        "one_user_per_address": lambda: AddressTaken(email=email),
    }
    with integrity_errors_as(taken):
        return User.objects.create_user(username, email=email, password=password, noc_role=noc_role)
