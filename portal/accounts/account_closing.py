"""Closing an account immediately and everywhere, and reopening it."""

from datetime import datetime

from django.contrib.auth.hashers import make_password
from django.db import transaction

from portal.accounts.errors import NoAddress
from portal.accounts.invitations import invitations_withdraw
from portal.accounts.models import Customer, Membership, User
from portal.accounts.noc_staff import another_noc_admin_stays
from portal.accounts.own_account import account_opened_announce
from portal.accounts.team import another_admin_stays, team_lock
from portal.accounts.tokens import tokens_end


@transaction.atomic
def account_close(*, person: User, now: datetime) -> None:
    """Close an account: end its sessions and API tokens, withdraw its invitations, and remove its password.

    Roles and memberships are kept for the record. Sessions depend on the password. Because the password is
    removed, no old session works after the account is reopened. Raises LastNocAdmin, or LastAdmin if a
    customer would lose its only admin.
    """
    runs = person.memberships.filter(role=Membership.Role.ADMIN, customer__retired_at__isnull=True)
    for membership in runs.select_related("customer").order_by("customer"):
        team_lock(membership)
        another_admin_stays(membership)
    another_noc_admin_stays(person)
    User.objects.filter(pk=person.pk).update(is_active=False, closed_with=None, password=make_password(None))
    tokens_end([person.pk], now=now)
    invitations_withdraw(invited_by=person, customers=Customer.objects.all(), now=now)


@transaction.atomic
def account_reopen(*, person: User, now: datetime) -> None:
    """Reopen an account with its former roles, and mail the user a link to choose a password.

    The old password no longer works. An open account does not change. Raises NoAddress if the account has no
    mail address.
    """
    if not person.email:
        raise NoAddress(username=person.username)
    closed = User.objects.filter(pk=person.pk, is_active=False)
    if closed.update(is_active=True, closed_with=None, password=make_password(None)):
        tokens_end([person.pk], now=now)
        account_opened_announce(user=person, now=now)
