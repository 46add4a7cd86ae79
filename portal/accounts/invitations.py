"""Invitations by e-mail, and the creation of accounts, with the same errors for taken names everywhere.

The link contains only the signed id of the invitation. The invitation's row decides whether the link is
valid. The number of invitations is limited, because each one sends a mail to a person who did not request it.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.core import signing
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.urls import reverse

from portal.accounts import mail
from portal.accounts.errors import (
    AccountNotClosed,
    AddressTaken,
    AlreadyInvited,
    AlreadyMember,
    InvitationForSomebodyElse,
    InvitationUsed,
    InvitedTooOften,
    TooManyInvitations,
    UsernameTaken,
)
from portal.accounts.language import writing_to
from portal.accounts.models import ApiToken, Customer, Invitation, Membership, User
from portal.accounts.permissions import managed_customers, visible_customers
from portal.accounts.tokens import maker_lock, tokens_end
from portal.celery_tasks import SEND_INVITATION
from portal.core.errors import integrity_errors_as
from portal.core.http import absolute_url
from portal.events.task_requests import send_task


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


WINDOW = timedelta(days=1)
PER_CUSTOMER, PER_ADDRESS = 100, 3


def check_may_invite(*, customer: Customer, email: str, now: datetime) -> None:
    """Check the limits on invitations. Raises TooManyInvitations or InvitedTooOften.

    The caller must have locked the row of ``customer``. All invitations of the last 24 hours count, including
    accepted and revoked ones. The limit per address counts only invitations of the same customer. Otherwise a
    customer could detect the invitations of other customers, and could use up their limit.
    """
    sent = Invitation.objects.filter(customer=customer, created_at__gt=now - WINDOW)
    if (again_at := _free_at(sent, PER_CUSTOMER)) is not None:
        raise TooManyInvitations(customer=customer.name, maximum=PER_CUSTOMER, again_at=again_at)
    if (again_at := _free_at(sent.filter(email__iexact=email), PER_ADDRESS)) is not None:
        raise InvitedTooOften(email=email, maximum=PER_ADDRESS, again_at=again_at)


def _free_at(sent: QuerySet[Invitation], maximum: int) -> datetime | None:
    """Return the time when the next invitation is allowed.

    At that time, fewer than ``maximum`` invitations are younger than WINDOW. Return None if there are fewer
    than ``maximum`` invitations at all.
    """
    moments = sent.order_by("-created_at").values_list("created_at", flat=True)
    last = moments[maximum - 1 : maximum].first()
    return None if last is None else last + WINDOW


GOOD_FOR = timedelta(days=7)
# The time for which a sender claims a mail. It is longer than EMAIL_TIMEOUT, the timeout of the mail server,
# so that two processes do not send the same mail.
_SENDING = timedelta(seconds=60)
_SIGNER = signing.Signer(salt="invitation")


@transaction.atomic
def invite(
    *,
    by: User,
    customer: Customer,
    email: str,
    role: str,
    now: datetime,
    made_with: ApiToken | None = None,
) -> Invitation:
    """Invite the owner of the address ``email`` to ``customer`` with ``role``.

    ``made_with``: the API token that ``by`` uses, if any. If that token is revoked, the invitation is revoked
    too. Raises AlreadyMember, AlreadyInvited, TooManyInvitations, InvitedTooOften or MakerRevoked.
    """
    # The lock prevents concurrent invitations from exceeding the limits.
    Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
    if Membership.objects.filter(customer=customer, user__email__iexact=email).exists():
        raise AlreadyMember(email=email, customer=customer.name)
    if made_with is not None:
        maker_lock(made_with)
    check_may_invite(customer=customer, email=email, now=now)
    _lapsed_close(customer, email, now)
    try:
        with transaction.atomic():
            invitation = Invitation.objects.create(
                customer=customer,
                email=email,
                role=role,
                invited_by=by,
                made_with=made_with,
                created_at=now,
                expires_at=now + GOOD_FOR,
            )
    except IntegrityError as error:
        raise AlreadyInvited(email=email) from error
    send_task(SEND_INVITATION, invitation.pk)
    return invitation


def invitation_revoke(*, invitation: Invitation, now: datetime) -> None:
    """Revoke an invitation, so that its link no longer works. Raises InvitationUsed if it is not open."""
    if not open_invitations(now).filter(pk=invitation.pk).update(revoked_at=now):
        raise InvitationUsed


def invitations_withdraw(
    *, invited_by: User, customers: QuerySet[Customer] | Collection[Customer], now: datetime
) -> None:
    """Revoke the open invitations to ``customers`` that the user ``invited_by`` sent.

    Call it when the user loses the right to invite.
    """
    open_invitations(now).filter(invited_by=invited_by, customer__in=customers).update(revoked_at=now)


def invitation_of(signed: str, *, now: datetime) -> Invitation:
    """Return the open invitation of a link. ``signed``: the signed id in the link.

    Raises InvitationUsed, also if the portal did not create the link.
    """
    try:
        number = int(_SIGNER.unsign(signed))
    except (signing.BadSignature, ValueError) as error:
        raise InvitationUsed from error
    found = open_invitations(now).select_related("customer").filter(pk=number).first()
    if found is None:
        raise InvitationUsed
    return found


@transaction.atomic
def accept_as(*, user: User, invitation: Invitation, now: datetime) -> None:
    """Accept an invitation with an existing account. Raises InvitationUsed or InvitationForSomebodyElse."""
    if user.email.lower() != invitation.email.lower():
        raise InvitationForSomebodyElse(email=invitation.email)
    _take(invitation, now)
    _join(user, invitation)


@transaction.atomic
def accept_as_new(*, username: str, password: str, invitation: Invitation, now: datetime) -> User:
    """Create an account for the invited address, and accept the invitation.

    ``password``: a password that the caller has validated. Raises InvitationUsed, UsernameTaken or
    AddressTaken.
    """
    # The agent API imports this module, and its settings leave out allauth.
    from allauth.account.models import EmailAddress

    _take(invitation, now)
    user = account_make(username=username, email=invitation.email, password=password)
    EmailAddress.objects.create(user=user, email=invitation.email.lower(), verified=True, primary=True)
    Membership.objects.create(user=user, customer=invitation.customer, role=invitation.role)
    return user


@transaction.atomic
def accept_reopening(*, password: str, invitation: Invitation, now: datetime) -> User:
    """Accept an invitation, and reopen the account of the invited address.

    The account must have been closed because its customer was retired. The link in the mail verifies the
    address. The account gets a new password, so that old sessions do not work. API tokens remain revoked, and
    the second factor is kept. ``password``: a password that the caller has validated. Raises InvitationUsed
    or AccountNotClosed.
    """
    _take(invitation, now)
    closed = User.objects.select_for_update().filter(closed_with__isnull=False)
    user = account_at(invitation.email, among=closed)
    if user is None:
        raise AccountNotClosed(email=invitation.email)
    user.is_active, user.closed_with = True, None
    user.set_password(password)
    user.save(update_fields=["is_active", "closed_with", "password"])
    tokens_end([user.pk], now=now)
    _join(user, invitation)
    return user


def invitations(user: User, *, now: datetime) -> QuerySet[Invitation]:
    """Return the open invitations of all customers in ``visible_customers(user)``.

    The caller must check whether the user may read them.
    """
    found = open_invitations(now).filter(customer__in=visible_customers(user))
    return found.select_related("customer", "invited_by")


def managed_invitations(user: User, *, now: datetime) -> QuerySet[Invitation]:
    """Return the open invitations of customers whose team this user manages."""
    return invitations(user, now=now).filter(customer__in=managed_customers(user))


def open_invitations(now: datetime) -> QuerySet[Invitation]:
    """Return the invitations that can be accepted: not accepted, not revoked, and not expired."""
    return Invitation.objects.filter(accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now)


def invitation_path(invitation: Invitation) -> str:
    """Return the path of the link in the mail."""
    return reverse("web:invitation", kwargs={"signed": _SIGNER.sign(str(invitation.pk))})


def invitation_send(*, invitation_id: int, now: datetime) -> None:
    """Send the mail of an open invitation, unless it was sent or is being sent."""
    claimed = _unsent(now).filter(pk=invitation_id).update(sending_until=now + _SENDING)
    if not claimed:
        return
    invitation = Invitation.objects.select_related("customer", "invited_by").get(pk=invitation_id)
    with writing_to(account_at(invitation.email), invitation.invited_by):
        mail.send(
            to=invitation.email,
            template="invitation",
            event=f"invitation-{invitation.pk}",
            inviter=invitation.invited_by.get_full_name() or invitation.invited_by.username,
            customer=invitation.customer.name,
            role=invitation.get_role_display(),
            until=invitation.expires_at,
            link=absolute_url(invitation_path(invitation)),
        )
    Invitation.objects.filter(pk=invitation_id).update(sent_at=now)


def invitations_resend(*, now: datetime) -> list[int]:
    """Send tasks again for mails that were not sent within a minute. Return the ids of the invitations."""
    waiting = _unsent(now).filter(created_at__lt=now - _SENDING)
    due = sorted(waiting.values_list("pk", flat=True))
    for invitation_id in due:
        send_task(SEND_INVITATION, invitation_id)
    return due


def _unsent(now: datetime) -> QuerySet[Invitation]:
    free = Q(sending_until__isnull=True) | Q(sending_until__lt=now)
    return open_invitations(now).filter(free, sent_at__isnull=True)


def _take(invitation: Invitation, now: datetime) -> None:
    """Mark the invitation as accepted. Raises InvitationUsed if it is not open.

    The check and the change are one statement. If two users use the link at the same time, only one succeeds.
    """
    if not open_invitations(now).filter(pk=invitation.pk).update(accepted_at=now):
        raise InvitationUsed


def _join(user: User, invitation: Invitation) -> None:
    Membership.objects.get_or_create(
        user=user, customer=invitation.customer, defaults={"role": invitation.role}
    )


def _lapsed_close(customer: Customer, email: str, now: datetime) -> None:
    Invitation.objects.annotate(address=Lower("email")).filter(
        customer=customer,
        address=email.lower(),
        accepted_at__isnull=True,
        revoked_at__isnull=True,
        expires_at__lte=now,
    ).update(revoked_at=now)
