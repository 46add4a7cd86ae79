"""Deliveries are what Standard Webhooks 1.0 says, by the specification's own library."""

import base64
from datetime import timedelta

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_delivery import webhook_deliver
from portal.notifications.webhook_operations import (
    delivery_redeliver,
    new_secret,
    webhook_create,
    webhook_rotate,
    webhook_test,
)
from tests.integration.isp import Isp
from tests.integration.notifications.receiver import Receiver
from tests.integration.orders import order

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(receiver: Receiver, ada: User, dairy: Customer) -> tuple[Webhook, str]:
    earlier = clock.now() - timedelta(minutes=1)
    return webhook_create(user=ada, customer=dairy, url=receiver.url, now=earlier)


def send(webhook: Webhook) -> None:
    assert webhook_deliver(webhook_id=webhook.pk, clock=clock.now) > 0


def test_the_upstream_library_verifies_what_is_sent(
    made: tuple[Webhook, str], receiver: Receiver, isp: Isp, alice: User
) -> None:
    webhook, secret = made
    placed = order(isp, alice, description="Zürich – “Ams” \U0001f9c0")
    events_fan_out(now=clock.now())
    send(webhook)
    (got,) = receiver.got
    body = Verifier(secret).verify(got.body, got.headers)
    assert (body["type"], body["data"]["order"]) == ("order.accepted", str(placed.pk))
    assert body["data"]["description"] == "Zürich – “Ams” \U0001f9c0"
    assert got.headers["content-type"] == "application/json"
    assert "." not in got.headers["webhook-id"]


def test_a_letter_changed_on_the_way_is_found(made: tuple[Webhook, str], receiver: Receiver) -> None:
    webhook, secret = made
    webhook_test(webhook=webhook, now=clock.now())
    send(webhook)
    (got,) = receiver.got
    Verifier(secret).verify(got.body, got.headers)
    for body, headers in (
        (got.body.replace(b"test", b"best"), got.headers),
        (got.body, {**got.headers, "webhook-id": "msg_other"}),
        (got.body, {**got.headers, "webhook-timestamp": str(int(got.headers["webhook-timestamp"]) + 1)}),
    ):
        with pytest.raises(WebhookVerificationError):
            Verifier(secret).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(new_secret()).verify(got.body, got.headers)


def test_while_secrets_change_both_verify_and_afterwards_the_new_one_alone(
    made: tuple[Webhook, str], receiver: Receiver, ada: User
) -> None:
    webhook, old = made
    now = clock.now()
    new = webhook_rotate(webhook=webhook, by=ada, now=now - timedelta(hours=23))
    webhook_test(webhook=webhook, now=now)
    send(webhook)
    webhook.refresh_from_db()
    assert webhook.previous_until
    Webhook.objects.update(previous_until=now - timedelta(seconds=1))
    webhook_test(webhook=webhook, now=now)
    send(webhook)
    during, after = receiver.got
    assert len(during.headers["webhook-signature"].split()) == 2
    for secret in (old, new):
        Verifier(secret).verify(during.body, during.headers)
    assert len(after.headers["webhook-signature"].split()) == 1
    Verifier(new).verify(after.body, after.headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(old).verify(after.body, after.headers)


def test_each_attempt_has_the_same_id_and_body_and_a_new_time(
    made: tuple[Webhook, str], receiver: Receiver
) -> None:
    webhook, secret = made
    receiver.answers = [500, 204, 204]
    webhook_test(webhook=webhook, now=clock.now())
    send(webhook)
    Webhook.objects.update(paused_until=None)
    Delivery.objects.update(next_try_at=clock.now())
    send(webhook)
    delivery_redeliver(delivery=Delivery.objects.select_related("webhook").get(), now=clock.now())
    send(webhook)
    assert len({(got.headers["webhook-id"], got.body) for got in receiver.got}) == 1
    assert len(receiver.got) == 3
    for got in receiver.got:
        Verifier(secret).verify(got.body, got.headers)
    assert [entry["status"] for entry in Delivery.objects.get().log] == [500, 204, 204]


def test_a_secret_is_random_and_long_enough_and_rests_sealed(made: tuple[Webhook, str]) -> None:
    webhook, secret = made
    assert secret.startswith("whsec_")
    assert 24 <= len(base64.b64decode(secret.removeprefix("whsec_"))) <= 64
    assert len({new_secret() for _ in range(100)}) == 100
    row = Webhook.objects.filter(pk=webhook.pk).values().get()
    assert not any(secret.removeprefix("whsec_") in str(value) for value in row.values())
