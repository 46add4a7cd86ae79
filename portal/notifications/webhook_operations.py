"""Operations of users on webhooks. Only managers of the customer may call them; views check the
permission.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from portal.accounts.models import ApiToken, Customer, User
from portal.accounts.secret_encryption import encrypt_secret
from portal.events.outbox import announce
from portal.notifications.errors import DeliveryUnderWay, TooManyWebhooks, WebhookDisabled
from portal.notifications.models import Delivery, Webhook
from portal.notifications.public_address_check import rules, usable_url
from portal.notifications.webhook_change_mails import receiver_changed
from portal.notifications.webhook_payloads import body
from portal.notifications.webhook_signing import new_secret

MOST_PER_CUSTOMER = 10
# After a change, both secrets sign for this time.
BOTH_SIGN_FOR = timedelta(hours=24)
SEALED_FOR = "webhook secrets"


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
    """Create a webhook of ``customer``, or of the NOC; return it with the plain text of its secret, shown
    only once.

    ``made_with``: the API token that ``user`` acts through, if any.

    Raises the errors of ``usable_url``, and TooManyWebhooks.
    """
    address = usable_url(url, allowed=rules(of_the_noc=customer is None))
    if customer is not None:
        # The lock serializes requests, so that the count is right.
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
    receiver_changed(webhook, what="added", by=user, token=made_with, now=now)
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
    """Change the given values. Pending deliveries go to the new URL. Raises the errors of ``usable_url``."""
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
        receiver_changed(webhook, what="address", to=str(changed["url"]), by=by, token=token, now=now)


@transaction.atomic
def webhook_rotate(*, webhook: Webhook, by: User, now: datetime, token: ApiToken | None = None) -> str:
    """Replace the secret; return its plain text, shown only once. The old secret also signs for 24 hours."""
    secret = new_secret()
    Webhook.objects.filter(pk=webhook.pk).update(
        previous_secret=F("secret"),
        previous_until=now + BOTH_SIGN_FOR,
        secret=encrypt_secret(secret, purpose=SEALED_FOR),
        secret_set_at=now,
    )
    receiver_changed(webhook, what="secret", by=by, token=token, now=now)
    return secret


@transaction.atomic
def webhook_disable(*, webhook: Webhook, because: str, now: datetime) -> bool:
    """Stop all deliveries, including pending ones; return whether the webhook was enabled.

    Any ``because`` except by hand is announced, because its managers must learn of it.
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
    """Resume deliveries from the next event on; the log contains missed events, which can be sent again."""
    Webhook.objects.filter(pk=webhook.pk).update(
        disabled_at=None, disabled_because="", failures=0, failing_since=None, paused_until=None
    )


def webhook_remove(*, webhook: Webhook) -> None:
    """Delete the webhook, its secrets and its log."""
    Webhook.objects.filter(pk=webhook.pk).delete()


def webhook_test(*, webhook: Webhook, now: datetime) -> Delivery:
    """Send a test event, like any other. Raises WebhookDisabled."""
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
    """Send the same body with the same id again. Raises WebhookDisabled, DeliveryUnderWay."""
    if delivery.webhook.disabled_at is not None:
        raise WebhookDisabled
    settled = Delivery.objects.filter(pk=delivery.pk).exclude(state=Delivery.State.PENDING)
    if not settled.update(state=Delivery.State.PENDING, tries=0, next_try_at=now):
        raise DeliveryUnderWay
    _wake(delivery.webhook)


def _wake(webhook: Webhook) -> None:
    """End the pause of the webhook: a user who requests a delivery knows more than the earlier
    failures show.
    """
    Webhook.objects.filter(pk=webhook.pk).update(paused_until=None)


def deliveries_forget(*, before: datetime) -> int:
    """Delete deliveries that were settled before then; return their number."""
    settled = Delivery.objects.exclude(state=Delivery.State.PENDING)
    return settled.filter(created_at__lt=before).delete()[0]
