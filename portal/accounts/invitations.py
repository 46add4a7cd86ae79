"""Invitations by e-mail. The row decides whether one is valid; the link only carries its signed number."""

from collections.abc import Collection
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.core import signing
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.urls import reverse

from portal.accounts import mail
from portal.accounts.account_creation import account_make
from portal.accounts.email_lookup import account_at
from portal.accounts.errors import (
    AccountNotClosed,
    AlreadyInvited,
    AlreadyMember,
    InvitationForSomebodyElse,
    InvitationUsed,
)
from portal.accounts.invitation_limits import check_may_invite
from portal.accounts.language import writing_to
from portal.accounts.models import ApiToken, Customer, Invitation, Membership, User
from portal.accounts.permissions import managed_customers, visible_customers
from portal.accounts.task_names import SEND_INVITATION
from portal.accounts.tokens import maker_lock, tokens_end
from portal.core.absolute_urls import absolute_url
from portal.events.outbox import send_task

GOOD_FOR = timedelta(days=7)
# Longer than a mail server may take (EMAIL_TIMEOUT), so that no two processes send the same mail.
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
    """Offer ``role`` to the reader of ``email``.

    An invitation made with a token ends with the token. Raises AlreadyMember, AlreadyInvited,
    TooManyInvitations, InvitedTooOften, MakerRevoked.
    """
    # The lock serializes invitations, so that two cannot exceed the limits together.
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
    send_task(SEND_INVITATION, invitation.pk, now=now)
    return invitation


def invitation_revoke(*, invitation: Invitation, now: datetime) -> None:
    """Invalidate the link. Raises InvitationUsed."""
    if not open_invitations(now).filter(pk=invitation.pk).update(revoked_at=now):
        raise InvitationUsed


def invitations_withdraw(
    *, invited_by: User, customers: QuerySet[Customer] | Collection[Customer], now: datetime
) -> None:
    """Revoke the invitations that a user sent for ``customers``, because the user loses the
    right to invite.
    """
    open_invitations(now).filter(invited_by=invited_by, customer__in=customers).update(revoked_at=now)


def invitation_of(signed: str, *, now: datetime) -> Invitation:
    """Return the invitation of a link. Raises InvitationUsed, also for a link that the portal never made."""
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
    """Accept with an existing account. Raises InvitationUsed, InvitationForSomebodyElse."""
    if user.email.lower() != invitation.email.lower():
        raise InvitationForSomebodyElse(email=invitation.email)
    _take(invitation, now)
    _join(user, invitation)


@transaction.atomic
def accept_as_new(*, username: str, password: str, invitation: Invitation, now: datetime) -> User:
    """Create an account for the invited address, and accept.

    ``password`` has passed the validators. Raises InvitationUsed, UsernameTaken, AddressTaken.
    """
    _take(invitation, now)
    user = account_make(username=username, email=invitation.email, password=password)
    EmailAddress.objects.create(user=user, email=invitation.email.lower(), verified=True, primary=True)
    Membership.objects.create(user=user, customer=invitation.customer, role=invitation.role)
    return user


@transaction.atomic
def accept_reopening(*, password: str, invitation: Invitation, now: datetime) -> User:
    """Reopen the account of the invited address, which was closed with its customer, and accept.

    The mail verifies the address. Sessions end with the old password, API tokens stay revoked, and a second
    factor stays. ``password`` has passed the validators. Raises InvitationUsed, AccountNotClosed.
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


def account_of(invitation: Invitation) -> User | None:
    """Return the account of the invited address, or None."""
    return account_at(invitation.email)


def invitations(user: User, *, now: datetime) -> QuerySet[Invitation]:
    """Return the open invitations of customers that this user may know of; the view checks who
    may read them.
    """
    found = open_invitations(now).filter(customer__in=visible_customers(user))
    return found.select_related("customer", "invited_by")


def managed_invitations(user: User, *, now: datetime) -> QuerySet[Invitation]:
    """Return the open invitations of customers whose team this user manages."""
    return invitations(user, now=now).filter(customer__in=managed_customers(user))


def open_invitations(now: datetime) -> QuerySet[Invitation]:
    """Return the invitations whose link still works."""
    return Invitation.objects.filter(accepted_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now)


def invitation_path(invitation: Invitation) -> str:
    """Return the path of the link."""
    return reverse("web:invitation", kwargs={"signed": _SIGNER.sign(str(invitation.pk))})


def invitation_send(*, invitation_id: int, now: datetime) -> None:
    """Send the mail of an open invitation, unless it was sent or is being sent."""
    claimed = _unsent(now).filter(pk=invitation_id).update(sending_until=now + _SENDING)
    if not claimed:
        return
    invitation = Invitation.objects.select_related("customer", "invited_by").get(pk=invitation_id)
    with writing_to(account_of(invitation), invitation.invited_by):
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
    """Request mails again that no server has accepted within a minute; return the ids of their
    invitations.
    """
    waiting = _unsent(now).filter(created_at__lt=now - _SENDING)
    due = sorted(waiting.values_list("pk", flat=True))
    for invitation_id in due:
        send_task(SEND_INVITATION, invitation_id, now=now)
    return due


def _unsent(now: datetime) -> QuerySet[Invitation]:
    free = Q(sending_until__isnull=True) | Q(sending_until__lt=now)
    return open_invitations(now).filter(free, sent_at__isnull=True)


def _take(invitation: Invitation, now: datetime) -> None:
    """Mark the invitation as accepted, by compare-and-swap: if two readers use the link at once, one
    succeeds.
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
