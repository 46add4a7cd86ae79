"""A webhook's turn: send its due deliveries, one request after the other, until a delivery fails.

Each webhook has at most one turn at a time. Webhooks whose last attempt failed use a separate queue, so that
slow receivers delay only each other. The state is in the database. If a task is lost, another task is sent
soon. A receiver can request a pause with Retry-After (RFC 9110, section 10.2.3).
"""

import base64
import hashlib
import hmac
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from portal.accounts.secret_encryption import decrypt_secret
from portal.celery_tasks import DOUBTFUL_WEBHOOK_TURN, WEBHOOK_TURN
from portal.core.background_work import backoff
from portal.events.task_requests import resend_tasks
from portal.notifications.http_post import Outcome, post
from portal.notifications.models import Delivery, Webhook
from portal.notifications.public_address_check import rules
from portal.notifications.webhook_operations import SEALED_FOR, SECRET_PREFIX, webhook_disable

# The longest pause that the portal respects, so that all ten attempts end within a few days.
LONGEST = timedelta(hours=1)
_NOTHING = timedelta(0)


def requested_wait(header: str, *, now: datetime) -> timedelta:
    """Return the pause in a Retry-After header, which contains seconds or a date; at most ``LONGEST``.

    Return zero if the header is invalid or the date is past.
    """
    text = header.strip()
    if text.isascii() and text.isdecimal():
        digits = text.lstrip("0")
        # Python refuses to convert very long numbers.
        return LONGEST if len(digits) > 6 else min(timedelta(seconds=int(digits or 0)), LONGEST)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return _NOTHING
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(_NOTHING, min(until - now, LONGEST))


# The waits before attempts 2 to 10, over 75 hours, as Standard Webhooks recommends. Attempt 1 is immediate.
WAITS = tuple(
    timedelta(seconds=seconds)
    for seconds in (5, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
TRIES = len(WAITS) + 1
# Each wait varies randomly by up to this fraction, to spread retries of deliveries that failed together.
JITTER = 0.1
_FIRST_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=5)


def next_try(
    tries: int, *, now: datetime, draw: Callable[[], float], requested: timedelta = _NOTHING
) -> datetime | None:
    """Return the time of the next attempt; None if no attempt is left.

    ``tries``: the number of failed attempts so far. ``draw``: a function that returns a random number from 0
    to 1. ``requested``: the pause that the receiver requested. It can only lengthen the wait.
    """
    if tries >= TRIES:
        return None
    factor: float = 1 + JITTER * (2 * draw() - 1)
    return now + max(WAITS[tries - 1] * factor, requested)


# The duration of a worker's claim. It is longer than the longest attempt (http_post.TOTAL_S), so that two
# workers never send to the same webhook at the same time.
_CLAIMED_FOR = timedelta(seconds=60)
# No attempt begins after this time of a turn, so that other webhooks get their turn.
_TURN = timedelta(seconds=20)
_LOGGED = 20


def webhooks_call(*, now: datetime) -> int:
    """Send a task for each webhook with due deliveries that no worker handles. Return the number of tasks."""
    rows = list(_waiting(now).values_list("pk", "failures"))
    sent = resend_tasks(WEBHOOK_TURN, [(pk,) for pk, failures in rows if not failures])
    return len(sent + resend_tasks(DOUBTFUL_WEBHOOK_TURN, [(pk,) for pk, failures in rows if failures]))


def webhook_deliver(*, webhook_id: int, clock: Callable[[], datetime]) -> int:
    """Send a webhook's due deliveries. Return the number of attempts; 0 if another worker handles it."""
    claim = uuid4()
    began = clock()
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lt=began)
    mine = Webhook.objects.filter(free, pk=webhook_id, disabled_at__isnull=True)
    if not mine.update(claim=claim, claimed_until=began + _CLAIMED_FOR):
        return 0
    tries = 0
    try:
        while (now := clock()) < began + _TURN and (delivery := _next(webhook_id, claim, now)):
            outcome = _send(delivery, now)
            tries += 1
            if not _settle(delivery, claim, outcome, clock()):
                break
    finally:
        Webhook.objects.filter(pk=webhook_id, claim=claim).update(claim=None, claimed_until=None)
    return tries


def _waiting(now: datetime) -> Any:
    due = Delivery.objects.filter(webhook=OuterRef("pk"), next_try_at__lte=now)
    return (
        Webhook.objects.filter(Exists(due), disabled_at__isnull=True)
        .filter(Q(claimed_until__isnull=True) | Q(claimed_until__lt=now))
        .filter(Q(paused_until__isnull=True) | Q(paused_until__lte=now))
    )


def _next(webhook_id: int, claim: Any, now: datetime) -> Delivery | None:
    """Renew the claim, and return the longest due delivery; None without one, or if the claim was lost."""
    not_paused = Q(paused_until__isnull=True) | Q(paused_until__lte=now)
    mine = Webhook.objects.filter(not_paused, pk=webhook_id, claim=claim, disabled_at__isnull=True)
    if not mine.update(claimed_until=now + _CLAIMED_FOR):
        return None
    due = Delivery.objects.select_related("webhook").filter(webhook=webhook_id, next_try_at__lte=now)
    found: Delivery | None = due.order_by("next_try_at", "created_at").first()
    return found


def _send(delivery: Delivery, now: datetime) -> Outcome:
    webhook = delivery.webhook
    secrets = [webhook.secret]
    if webhook.previous_until is not None and now < webhook.previous_until:
        secrets.append(webhook.previous_secret)
    body = delivery.body.encode()
    plain = map(partial(decrypt_secret, purpose=SEALED_FOR), secrets)
    headers = signed_headers(body, message_id=delivery.message_id, at=now, secrets=list(plain))
    return post(webhook.url, body, headers=headers, rules=rules(of_the_noc=webhook.customer_id is None))


def signed_headers(
    body: bytes, *, message_id: str, at: datetime, secrets: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the three headers that sign a message, with one signature for each secret.

    During a change of the secret, a receiver knows only one of the two secrets. ``at``: the time of the
    attempt. Receivers check it to detect replays.
    """
    timestamp = int(at.timestamp())
    signatures = [_signature(secret, f"{message_id}.{timestamp}.".encode() + body) for secret in secrets]
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(signatures)),
    ]


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


@transaction.atomic
def _settle(delivery: Delivery, claim: Any, outcome: Outcome, now: datetime) -> bool:
    """Store the result of an attempt. Return whether the turn continues."""
    # Lock the webhook before the delivery, as all code does. Another worker may have claimed the webhook, or
    # it may have been deleted.
    webhook = (
        Webhook.objects.select_for_update(no_key=True).filter(pk=delivery.webhook_id, claim=claim).first()
    )
    if webhook is None:
        return False
    entry = {"status": outcome.status, "error": outcome.error, "took_ms": outcome.took_ms}
    delivery.log = [*delivery.log, {"at": now.isoformat(), **entry}][-_LOGGED:]
    delivery.answer = outcome.answer
    delivery.tries += 1
    if outcome.delivered:
        _moved(delivery, Delivery.State.DELIVERED, None)
        if webhook.failures:
            Webhook.objects.filter(pk=webhook.pk).update(failures=0, failing_since=None, paused_until=None)
        return True
    requested = requested_wait(outcome.retry_after, now=now)
    again = next_try(delivery.tries, now=now, draw=random.random, requested=requested)
    gone = outcome.error == Delivery.Error.GONE
    _moved(
        delivery, *((Delivery.State.PENDING, again) if again and not gone else (Delivery.State.FAILED, None))
    )
    since = webhook.failing_since or now
    # The pause that the receiver requested can only lengthen the pause.
    pause = max(backoff(webhook.failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE), requested)
    Webhook.objects.filter(pk=webhook.pk).update(
        failures=webhook.failures + 1, failing_since=since, paused_until=now + pause
    )
    if gone:
        webhook_disable(webhook=webhook, because=Webhook.Disabled.GONE, now=now)
    elif now - since >= timedelta(days=settings.LONGLINE_WEBHOOK_DISABLE_DAYS):
        webhook_disable(webhook=webhook, because=Webhook.Disabled.FAILING, now=now)
    return False


def _moved(delivery: Delivery, state: str, next_try_at: datetime | None) -> None:
    delivery.state, delivery.next_try_at = state, next_try_at
    delivery.save(update_fields=["state", "next_try_at", "log", "answer", "tries"])
