"""Objects that a token or a user created and that outlive it. An operator can review and end them.

Webhooks and enrolments remain after a token is revoked or a user leaves. Only people know which of them still
serve the customer or the NOC. The portal therefore ends only the objects that somebody chooses.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts.invitations import open_invitations
from portal.accounts.models import ApiToken, Invitation, Membership, User
from portal.accounts.people import account_close, member_remove
from portal.accounts.permissions import managed_customers
from portal.accounts.tokens import lineage, token_revoke
from portal.inventory.certificates import enrolment_end
from portal.inventory.models import RouterEnrolment
from portal.notifications.models import Webhook
from portal.notifications.webhook_operations import webhook_disable


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The objects that a token or a user created.

    ``webhooks`` are enabled. ``enrolments`` are open, or led to a certificate that is still valid. Webhooks
    and enrolments end only if they are chosen. ``tokens`` and ``invitations`` always end.
    """

    webhooks: dict[str, Webhook] = field(default_factory=dict)
    enrolments: dict[str, RouterEnrolment] = field(default_factory=dict)
    tokens: list[ApiToken] = field(default_factory=list)
    invitations: list[Invitation] = field(default_factory=list)

    @property
    def keys(self) -> set[str]:
        """Return the keys that ``chosen`` accepts: one for each webhook and each enrolment."""
        return {*self.webhooks, *self.enrolments}

    def chosen(self, keys: Collection[str]) -> "Made":
        """Return a copy with only those webhooks and enrolments. Unknown keys are ignored."""
        return replace(
            self,
            webhooks={key: row for key, row in self.webhooks.items() if key in keys},
            enrolments={key: row for key, row in self.enrolments.items() if key in keys},
        )


def made_with(token: ApiToken, *, viewer: User, now: datetime) -> Made:
    """Return what a token, or a token that descends from it, created and ``viewer`` may manage."""
    tokens = lineage(token)
    by_them = Q(made_with__in=tokens)
    live = ApiToken.objects.filter(pk__in=tokens, revoked_at__isnull=True).exclude(pk=token.pk)
    return _made(viewer, by_them, by_them, by_them, live, now)


def made_by(person: User, *, viewer: User, now: datetime) -> Made:
    """Return what a user created, on pages and through the API, and ``viewer`` may manage."""
    live = ApiToken.objects.filter(user=person, revoked_at__isnull=True)
    return _made(
        viewer,
        Q(created_by=person.username),
        Q(offered_by=person.username),
        Q(invited_by=person),
        live,
        now,
    )


def made_by_member(membership: Membership, *, viewer: User, now: datetime) -> Made:
    """Return the objects that a member created for the customer of the membership.

    The admins of a customer need not see objects for other customers. Tokens are left out too, because they
    lose their rights to the customer when the membership ends.
    """
    of_customer = Q(customer=membership.customer_id)
    return _made(
        viewer,
        of_customer & Q(created_by=membership.user.username),
        None,
        of_customer & Q(invited_by=membership.user_id),
        ApiToken.objects.none(),
        now,
    )


@transaction.atomic
def token_revoke_with(*, token: ApiToken, ending: Made, now: datetime) -> None:
    """Revoke a token, and end the chosen objects that were created with it."""
    token_revoke(token=token, now=now)
    _end(ending, now)


@transaction.atomic
def member_remove_with(*, membership: Membership, ending: Made, now: datetime) -> None:
    """Remove a member as ``member_remove`` does, and end the chosen objects that the member created."""
    member_remove(membership=membership, now=now)
    _end(ending, now)


@transaction.atomic
def account_close_with(*, person: User, ending: Made, now: datetime) -> None:
    """Close an account as ``account_close`` does, and end the chosen objects that its owner created."""
    account_close(person=person, now=now)
    _end(ending, now)


def _made(
    viewer: User,
    webhooks: Q,
    enrolments: Q | None,
    invitations: Q,
    tokens: QuerySet[ApiToken],
    now: datetime,
) -> Made:
    run = managed_customers(viewer)
    visible = Q(customer__in=run) | Q(customer__isnull=True) if viewer.is_noc_admin else Q(customer__in=run)
    hooks = Webhook.objects.filter(webhooks, visible, disabled_at__isnull=True).select_related("customer")
    offers = RouterEnrolment.objects.none()
    if enrolments is not None and viewer.is_noc_admin:
        is_open = Q(used_at__isnull=True, expires_at__gt=now)
        is_good = Q(routercertificate__revoked_at__isnull=True, routercertificate__expires_at__gt=now)
        offers = RouterEnrolment.objects.filter(enrolments, is_open | is_good)
    sent = open_invitations(now).filter(invitations, customer__in=run).select_related("customer")
    return Made(
        webhooks={f"webhook-{hook.pk}": hook for hook in hooks.order_by("pk")},
        enrolments={
            f"enrolment-{offer.pk}": offer
            for offer in offers.select_related("router", "routercertificate").order_by("pk")
        },
        tokens=list(tokens.order_by("pk")),
        invitations=list(sent.order_by("pk")),
    )


def _end(chosen: Made, now: datetime) -> None:
    """End the chosen objects. A webhook is only disabled, because its log records its deliveries."""
    for webhook in chosen.webhooks.values():
        webhook_disable(webhook=webhook, because=Webhook.Disabled.BY_HAND, now=now)
    for enrolment in chosen.enrolments.values():
        enrolment_end(enrolment=enrolment, now=now)
