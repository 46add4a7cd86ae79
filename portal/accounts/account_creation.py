"""Creating accounts. Every caller gets the same error for a taken name or address."""

from portal.accounts.errors import AddressTaken, UsernameTaken
from portal.accounts.models import User
from portal.core.integrity_errors import integrity_errors_as


def account_make(
    *, username: str, email: str, password: str | None, noc_role: str = User.NocRole.NONE
) -> User:
    """Create an account. ``password`` has passed the validators; None allows no sign-in by password until the
    user chooses one.

    Raises UsernameTaken, AddressTaken. Names and addresses are compared without regard to case.
    """
    taken = {
        "accounts_user_username_key": lambda: UsernameTaken(username=username),
        "one_user_per_name": lambda: UsernameTaken(username=username),
        "one_user_per_address": lambda: AddressTaken(email=email),
    }
    with integrity_errors_as(taken):
        return User.objects.create_user(username, email=email, password=password, noc_role=noc_role)
