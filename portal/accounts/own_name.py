"""The name that people go by, which everybody chooses for themselves."""

from portal.accounts.models import User


def name_change(*, user: User, first_name: str, last_name: str) -> None:
    """What colleagues and the NOC read; the user name, by which one signs in, stays."""
    User.objects.filter(pk=user.pk).update(first_name=first_name, last_name=last_name)
