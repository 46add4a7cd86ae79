"""The name of a user on pages. Users choose it themselves."""

from portal.accounts.models import User


def name_change(*, user: User, first_name: str, last_name: str) -> None:
    """Change the name that colleagues and the NOC see. The user name for sign-in does not change."""
    User.objects.filter(pk=user.pk).update(first_name=first_name, last_name=last_name)
