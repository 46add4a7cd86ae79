"""Operations of users on webhooks, and the webhooks that a user may see.

The views check that the user may manage the customer's webhooks.
"""

import base64
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.accounts.models import ApiToken, Customer, Membership, User
from portal.accounts.secret_encryption import encrypt_secret
from portal.events.announcements import announce
from portal.notifications.errors import DeliveryUnderWay, TooManyWebhooks, WebhookDisabled
from portal.notifications.event_catalogue import body
from portal.notifications.mail_recipients import RECEIVER_CHANGED
from portal.notifications.models import Delivery, Webhook
from portal.notifications.public_address_check import rules, usable_url

MOST_PER_CUSTOMER = 10
# After a change of the secret, deliveries are signed with both secrets for this time.
BOTH_SIGN_FOR = timedelta(hours=24)
SEALED_FOR = "webhook secrets"
SECRET_PREFIX = "whsec_"  # noqa: S105 - no secret
# The specification requires 24 to 64 bytes.
_SECRET_BYTES = 32
_DISABLED: dict[str, str] = {
    Webhook.Disabled.BY_HAND: gettext_noop("Disabled by hand"),
    Webhook.Disabled.GONE: gettext_noop("Disabled: its receiver answered that it is gone permanently"),
    Webhook.Disabled.FAILING: gettext_noop("Disabled: nothing could be delivered for days"),
}


def webhooks(user: User) -> QuerySet[Webhook]:
    """Return the webhooks whose existence this user may know: those of all customers of the user.

    The user is not necessarily allowed to manage them (see ``managed_webhooks``).
    """
    found: QuerySet[Webhook] = Webhook.objects.visible_to(user).select_related("customer")
    return found


def managed_webhooks(user: User) -> QuerySet[Webhook]:
    """Return the webhooks whose URLs and logs this user may read.

    These are the webhooks of customers where the user is an admin. NOC staff may read all of them.
    """
    found = webhooks(user)
    if user.is_noc:
        return found
    return found.filter(
        Q(customer__memberships__user=user, customer__memberships__role=Membership.Role.ADMIN)
    )


def deliveries(user: User) -> QuerySet[Delivery]:
    """Return the deliveries of all webhooks in ``webhooks(user)``."""
    found: QuerySet[Any] = Delivery.objects.visible_to(user).select_related("webhook__customer")
    return found


def new_secret() -> str:
    """Return a new random secret in the form that users get: ``whsec_`` and base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


@transaction.atomic
def webhook_create(
    *,
    user: User,
    customer: Customer | None,
    url: str,
    now: datetime,
    description: str = "",
    types: Sequence[str] = (),
    made_with: ApiToken | None = None,
) -> tuple[Webhook, str]:
    """Create a webhook of ``customer``; None means the NOC. Return the webhook and its secret as plain text.

    The secret is shown only once. ``made_with``: the API token that ``user`` uses, if any. Raises the errors
    of ``usable_url``, or TooManyWebhooks.
    """
    address = usable_url(url, allowed=rules(of_the_noc=customer is None))
    if customer is not None:
        # The lock prevents concurrent requests from exceeding the maximum.
        Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
    if Webhook.objects.filter(customer=customer).count() >= MOST_PER_CUSTOMER:
        raise TooManyWebhooks(maximum=MOST_PER_CUSTOMER)
    secret = new_secret()
    webhook = Webhook.objects.create(
        customer=customer,
        url=address,
        description=description,
        types=sorted(set(types)),
        created_at=now,
        created_by=user.username,
        made_with=made_with,
        secret=encrypt_secret(secret, purpose=SEALED_FOR),
        secret_set_at=now,
    )
    _receiver_changed(webhook, what="added", by=user, token=made_with, now=now)
    return webhook, secret


@transaction.atomic
def webhook_change(
    *,
    webhook: Webhook,
    by: User,
    now: datetime,
    token: ApiToken | None = None,
    url: str | None = None,
    description: str | None = None,
    types: Sequence[str] | None = None,
) -> None:
    """Change the values that are not None. Raises the errors of ``usable_url``.

    Pending deliveries are sent to the new URL.
    """
    changed: dict[str, object] = {}
    if url is not None and url != webhook.url:
        address = usable_url(url, allowed=rules(of_the_noc=webhook.customer_id is None))
        changed |= {"url": address, "failures": 0, "failing_since": None, "paused_until": None}
    if description is not None:
        changed["description"] = description
    if types is not None:
        changed["types"] = sorted(set(types))
    if changed:
        Webhook.objects.filter(pk=webhook.pk).update(**changed)
    if "url" in changed:
        _receiver_changed(webhook, what="address", to=str(changed["url"]), by=by, token=token, now=now)


@transaction.atomic
def webhook_rotate(*, webhook: Webhook, by: User, now: datetime, token: ApiToken | None = None) -> str:
    """Replace the secret. Return the plain text of the new secret, which is shown only once.

    For 24 hours, deliveries are also signed with the old secret.
    """
    secret = new_secret()
    Webhook.objects.filter(pk=webhook.pk).update(
        previous_secret=F("secret"),
        previous_until=now + BOTH_SIGN_FOR,
        secret=encrypt_secret(secret, purpose=SEALED_FOR),
        secret_set_at=now,
    )
    _receiver_changed(webhook, what="secret", by=by, token=token, now=now)
    return secret


def _receiver_changed(
    webhook: Webhook,
    *,
    what: Literal["added", "address", "secret"],
    by: User,
    token: ApiToken | None,
    now: datetime,
    to: str = "",
) -> None:
    """Store an event about a change of a webhook.

    ``to``: the new URL, if the URL changed. The event contains all data for the mail, because the webhook may
    be deleted before the mail is sent. The event contains no secrets.
    """
    event_data = {
        "webhook": webhook.pk,
        "what": what,
        "name": str(webhook),
        "customer": webhook.customer.name if webhook.customer else "",
        "before": webhook.url,
        "address": to or webhook.url,
        "by": by.username,
        "token": f"{token.name} (ll_{token.prefix}_…)" if token else "",
    }
    announce(RECEIVER_CHANGED, now=now, customer_id=webhook.customer_id, actor=by.username, data=event_data)


@transaction.atomic
def webhook_disable(*, webhook: Webhook, because: str, now: datetime) -> bool:
    """Disable a webhook. Return False if it was already disabled. Pending deliveries fail.

    An event notifies the admins, unless a user disabled the webhook (``because`` BY_HAND).
    """
    enabled = Webhook.objects.filter(pk=webhook.pk, disabled_at__isnull=True)
    if not enabled.update(disabled_at=now, disabled_because=because):
        return False
    Delivery.objects.filter(webhook=webhook, state=Delivery.State.PENDING).update(
        state=Delivery.State.FAILED, next_try_at=None
    )
    if because != Webhook.Disabled.BY_HAND:
        event_data = {"webhook": webhook.pk, "because": because}
        announce("webhook.disabled", now=now, customer_id=webhook.customer_id, data=event_data)
    return True


def webhook_enable(*, webhook: Webhook) -> None:
    """Enable a webhook. It gets events from now on.

    Deliveries that failed when the webhook was disabled remain in the log, and users can send them again.
    Events during the disabled time have no deliveries.
    """
    Webhook.objects.filter(pk=webhook.pk).update(
        disabled_at=None, disabled_because="", failures=0, failing_since=None, paused_until=None
    )


def webhook_remove(*, webhook: Webhook) -> None:
    """Delete a webhook, its secrets and its log."""
    Webhook.objects.filter(pk=webhook.pk).delete()


def webhook_test(*, webhook: Webhook, now: datetime) -> Delivery:
    """Create a delivery of a test event, and return it. Raises WebhookDisabled."""
    if webhook.disabled_at is not None:
        raise WebhookDisabled
    _wake(webhook)
    made: Delivery = Delivery.objects.create(
        webhook=webhook,
        type="webhook.test",
        body=body("webhook.test", now, {"webhook": webhook.pk}),
        created_at=now,
        next_try_at=now,
    )
    return made


def delivery_redeliver(*, delivery: Delivery, now: datetime) -> None:
    """Send a delivery again, with the same body and id. Raises WebhookDisabled or DeliveryUnderWay."""
    if delivery.webhook.disabled_at is not None:
        raise WebhookDisabled
    settled = Delivery.objects.filter(pk=delivery.pk).exclude(state=Delivery.State.PENDING)
    if not settled.update(state=Delivery.State.PENDING, tries=0, next_try_at=now):
        raise DeliveryUnderWay
    _wake(delivery.webhook)


def _wake(webhook: Webhook) -> None:
    """End the pause of a webhook. A user who requests a delivery expects that the receiver works again."""
    Webhook.objects.filter(pk=webhook.pk).update(paused_until=None)


def deliveries_forget(*, before: datetime) -> int:
    """Delete deliveries that were created before that time and are not pending. Return the number of rows."""
    settled = Delivery.objects.exclude(state=Delivery.State.PENDING)
    return settled.filter(created_at__lt=before).delete()[0]


def why_disabled(because: str) -> str:
    """Return the sentence for a stored reason ``because``, or ``because`` itself if it is unknown here."""
    if because not in _DISABLED:
        return _("Disabled: {reason}").format(reason=because)
    return _(_DISABLED[because])
