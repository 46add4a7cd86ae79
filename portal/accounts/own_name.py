"""The display name, which all users choose for themselves."""

from portal.accounts.models import User


def name_change(*, user: User, first_name: str, last_name: str) -> None:
    """Change the name that colleagues and the NOC read. The user name for sign-in stays."""
    User.objects.filter(pk=user.pk).update(first_name=first_name, last_name=last_name)
