"""Attempts at deliveries: their times, the pauses of receivers, and their end."""

import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.models import Event
from portal.notifications import webhook_delivery
from portal.notifications.errors import DeliveryUnderWay, WebhookDisabled
from portal.notifications.http_post import Outcome
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_delivery import (
    DOUBTFUL_WEBHOOK_TURN,
    TRIES,
    WAITS,
    WEBHOOK_TURN,
    next_try,
    webhook_deliver,
    webhooks_call,
)
from portal.notifications.webhook_operations import (
    deliveries_forget,
    delivery_redeliver,
    webhook_change,
    webhook_create,
    webhook_disable,
    webhook_enable,
    webhook_remove,
    webhook_test,
)
from tests.integration.notifications.receiver import Receiver
from tests.integration.requested_tasks import forget_requests, requested

pytestmark = pytest.mark.django_db

TOOK = Outcome(204, "", "", 3)
REFUSED = Outcome(500, "status", "no", 3)
GONE = Outcome(410, "gone", "", 3)


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = clock.now()

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def time() -> Clock:
    return Clock()


def turn(webhook: Webhook, time: Clock, *outcomes: Outcome) -> int:
    """A turn with these responses of the receiver; the last one repeats. It takes the webhook's message."""
    forget_requests()
    left = list(outcomes)

    def post(*_: Any, **__: Any) -> Outcome:
        return left.pop(0) if len(left) > 1 else left[0]

    return deliver(webhook, time, post)


def deliver(webhook: Webhook, time: Clock, post: Callable[..., Outcome]) -> int:
    """A turn in which ``post`` is the exchange with the receiver, and waits vary by nothing."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(webhook_delivery, "post", post)
        patched.setattr(random, "random", lambda: 0.5)
        return webhook_deliver(webhook_id=webhook.pk, clock=time)


def waiting(webhook: Webhook, time: Clock, count: int = 1) -> list[Delivery]:
    return [webhook_test(webhook=webhook, now=time.now) for _ in range(count)]


class TestSchedule:
    def test_a_message_is_tried_ten_times_over_75_hours(self, webhook: Webhook, time: Clock) -> None:
        (made,) = waiting(webhook, time)
        tries, began = [], time.now
        while Delivery.objects.get().next_try_at:
            # The beat finds it: each 2 s, which this clock shortens to the moment it is due.
            assert webhooks_call(now=time.now) == 1
            turn(webhook, time, REFUSED)
            tries.append(time.now - began)
            time.now = Delivery.objects.get().next_try_at or time.now
        assert [later - earlier for earlier, later in pairwise(tries)] == list(WAITS)
        assert len(tries) == TRIES == 10
        assert timedelta(hours=75) < tries[-1] < timedelta(hours=76)
        made.refresh_from_db()
        assert (made.state, made.tries, len(made.log)) == ("failed", 10, 10)

    @pytest.mark.parametrize("tries", range(1, TRIES))
    def test_each_wait_is_up_to_a_tenth_shorter_or_longer(self, tries: int, time: Clock) -> None:
        waits = []
        for drawn in (0.0, 0.5, 1.0):
            again = next_try(tries, now=time.now, draw=lambda drawn=drawn: drawn)
            assert again is not None
            waits.append((again - time.now) / WAITS[tries - 1])
        assert waits == pytest.approx([0.9, 1.0, 1.1])

    def test_after_the_last_there_is_none(self, time: Clock) -> None:
        assert next_try(TRIES, now=time.now, draw=lambda: 0.5) is None

    def test_a_receiver_that_recovers_gets_what_it_missed(self, webhook: Webhook, time: Clock) -> None:
        waiting(webhook, time, 3)
        turn(webhook, time, REFUSED)
        time.now += timedelta(seconds=5)
        assert turn(webhook, time, TOOK) == 3
        assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}
        webhook.refresh_from_db()
        assert (webhook.failures, webhook.failing_since, webhook.paused_until) == (0, None, None)


class TestRequestedPause:
    """Retry-After, as Standard Webhooks 1.0 wants it taken into consideration."""

    def test_a_requested_delivery_ends_the_receivers_pause(self, webhook: Webhook, time: Clock) -> None:
        (first,) = waiting(webhook, time)
        turn(webhook, time, Outcome(503, "status", "", 3, retry_after="3600"))
        waiting(webhook, time)
        assert (webhooks_call(now=time.now), turn(webhook, time, TOOK)) == (1, 1)
        Delivery.objects.filter(pk=first.pk).update(state="failed", next_try_at=None)
        Webhook.objects.update(paused_until=time.now + timedelta(hours=1))
        delivery_redeliver(delivery=first, now=time.now)
        assert turn(webhook, time, TOOK) == 1

    @pytest.mark.parametrize("status", [429, 503])
    def test_message_and_receiver_are_left_alone_as_long_as_it_asks(
        self, webhook: Webhook, time: Clock, status: int
    ) -> None:
        waiting(webhook, time, 2)
        turn(webhook, time, Outcome(status, "status", "", 3, retry_after="1200"))
        webhook.refresh_from_db()
        requested_until = time.now + timedelta(minutes=20)
        assert webhook.paused_until == requested_until
        assert Delivery.objects.get(tries=1).next_try_at == requested_until
        time.now = requested_until - timedelta(seconds=1)
        assert (webhooks_call(now=time.now), turn(webhook, time, TOOK)) == (0, 0)
        time.now = requested_until
        assert (webhooks_call(now=time.now), turn(webhook, time, TOOK)) == (1, 2)

    def test_a_wait_of_ours_that_is_longer_stays(self, webhook: Webhook, time: Clock) -> None:
        (made,) = waiting(webhook, time)
        Delivery.objects.update(tries=4)
        turn(webhook, time, Outcome(429, "status", "", 3, retry_after="60"))
        made.refresh_from_db()
        assert made.next_try_at == time.now + timedelta(hours=5)

    def test_ten_tries_end_within_four_days_for_any_requested_pause(
        self, webhook: Webhook, time: Clock
    ) -> None:
        waiting(webhook, time)
        began = time.now
        while again := Delivery.objects.get().next_try_at:
            time.now = max(time.now, again)
            turn(webhook, time, Outcome(429, "status", "", 3, retry_after="99999999"))
        assert Delivery.objects.get().tries == 10
        assert time.now - began < timedelta(days=4)


class TestFairness:
    def test_a_turn_ends_with_the_first_failure_and_the_receiver_rests(
        self, webhook: Webhook, time: Clock
    ) -> None:
        waiting(webhook, time, 5)
        assert turn(webhook, time, TOOK, REFUSED) == 2
        assert turn(webhook, time, TOOK) == 0
        assert webhooks_call(now=time.now) == 0
        webhook.refresh_from_db()
        assert webhook.paused_until == time.now + timedelta(seconds=5)

    def test_rests_grow_to_five_minutes(self, webhook: Webhook, time: Clock) -> None:
        waiting(webhook, time, 50)
        rests = []
        for _ in range(9):
            turn(webhook, time, REFUSED)
            webhook.refresh_from_db()
            assert webhook.paused_until
            rests.append((webhook.paused_until - time.now).total_seconds())
            time.now = webhook.paused_until
        assert rests == [5, 10, 20, 40, 80, 160, 300, 300, 300]

    def test_a_turn_ends_in_time_and_goes_on_later(self, webhook: Webhook, time: Clock) -> None:
        waiting(webhook, time, 5)

        def slow(*_: Any, **__: Any) -> Outcome:
            time.now += timedelta(seconds=8)
            return TOOK

        assert deliver(webhook, time, slow) == 3
        assert webhooks_call(now=time.now) == 1
        assert deliver(webhook, time, slow) == 2

    def test_who_failed_last_waits_in_another_queue(
        self, webhook: Webhook, receiver: Receiver, charlie: User, bakery: Customer, time: Clock
    ) -> None:
        other, _ = webhook_create(user=charlie, customer=bakery, url=receiver.url, now=time.now)
        waiting(webhook, time)
        turn(webhook, time, REFUSED)
        time.now += timedelta(seconds=5)
        waiting(other, time)
        forget_requests()
        assert webhooks_call(now=time.now) == 2
        tasks = dict(requested())
        assert tasks == {WEBHOOK_TURN: [other.pk], DOUBTFUL_WEBHOOK_TURN: [webhook.pk]}

    def test_a_turn_is_requested_once_and_again_when_the_message_was_lost(
        self, webhook: Webhook, time: Clock
    ) -> None:
        waiting(webhook, time)
        assert [webhooks_call(now=time.now) for _ in range(3)] == [1, 0, 0]
        forget_requests()
        assert webhooks_call(now=time.now) == 1

    def test_two_are_never_at_one_webhook(self, webhook: Webhook, time: Clock) -> None:
        waiting(webhook, time, 2)
        inner = []

        def while_sending(*_: Any, **__: Any) -> Outcome:
            inner.append(deliver(webhook, time, while_sending))
            return TOOK

        assert deliver(webhook, time, while_sending) == 2
        assert inner == [0, 0]

    def test_a_dead_worker_is_replaced_after_a_minute(self, webhook: Webhook, time: Clock) -> None:
        (made,) = waiting(webhook, time)

        def killed(*_: Any, **__: Any) -> Outcome:
            raise SystemExit

        Webhook.objects.update(claim="11111111-1111-4111-8111-111111111111")
        Webhook.objects.update(claimed_until=time.now + timedelta(seconds=60))
        assert (webhooks_call(now=time.now), turn(webhook, time, TOOK)) == (0, 0)
        time.now += timedelta(seconds=61)
        assert (webhooks_call(now=time.now), turn(webhook, time, TOOK)) == (1, 1)
        with pytest.raises(SystemExit):
            waiting(webhook, time)
            deliver(webhook, time, killed)
        # A delivery whose worker died is sent again with the same id.
        assert turn(webhook, time, TOOK) == 1
        made.refresh_from_db()
        assert made.state == "delivered"

    def test_a_claim_that_was_lost_meanwhile_notes_nothing(self, webhook: Webhook, time: Clock) -> None:
        waiting(webhook, time)

        def overtaken(*_: Any, **__: Any) -> Outcome:
            Webhook.objects.update(claim="11111111-1111-4111-8111-111111111111")
            return REFUSED

        deliver(webhook, time, overtaken)
        made = Delivery.objects.get()
        assert (made.tries, made.state) == (0, "pending")


class TestDisabling:
    def test_410_disables_at_once(self, webhook: Webhook, time: Clock) -> None:
        waiting(webhook, time, 2)
        turn(webhook, time, GONE)
        webhook.refresh_from_db()
        assert (webhook.disabled_because, webhook.disabled_at) == ("gone", time.now)
        assert set(Delivery.objects.values_list("state", flat=True)) == {"failed"}
        announced = Event.objects.get(kind="webhook.disabled")
        assert (announced.customer_id, announced.data["because"]) == (webhook.customer_id, "gone")

    def test_five_days_of_nothing_but_failures_disable(self, webhook: Webhook, time: Clock) -> None:
        began = time.now
        while not Webhook.objects.get().disabled_at:
            waiting(webhook, time)
            turn(webhook, time, REFUSED)
            time.now += timedelta(hours=6)
        webhook.refresh_from_db()
        assert webhook.disabled_because == "failing"
        assert webhook.disabled_at == began + timedelta(days=5)

    def test_a_success_restarts_the_count_of_days(self, webhook: Webhook, time: Clock) -> None:
        for hours in range(0, 9 * 24, 6):
            waiting(webhook, time)
            turn(webhook, time, TOOK if hours == 4 * 24 else REFUSED)
            Delivery.objects.all().delete()
            time.now += timedelta(hours=6)
        assert Webhook.objects.get().disabled_at is None

    def test_a_disabled_webhook_gets_neither_deliveries_nor_tests(
        self, webhook: Webhook, time: Clock
    ) -> None:
        waiting(webhook, time)
        assert webhook_disable(webhook=webhook, because="byHand", now=time.now)
        assert not webhook_disable(webhook=webhook, because="byHand", now=time.now)
        webhook.refresh_from_db()
        assert (webhooks_call(now=time.now), turn(webhook, time, TOOK)) == (0, 0)
        with pytest.raises(WebhookDisabled):
            webhook_test(webhook=webhook, now=time.now)
        assert not Event.objects.filter(kind="webhook.disabled").exists()

    def test_enabled_again_it_has_the_log_to_send_from(self, webhook: Webhook, time: Clock) -> None:
        (made,) = waiting(webhook, time)
        turn(webhook, time, GONE)
        webhook.refresh_from_db()
        webhook_enable(webhook=webhook)
        made = Delivery.objects.select_related("webhook").get()
        delivery_redeliver(delivery=made, now=time.now)
        with pytest.raises(DeliveryUnderWay):
            delivery_redeliver(delivery=made, now=time.now)
        assert turn(webhook, time, TOOK) == 1

    def test_another_address_is_tried_at_once(
        self, webhook: Webhook, ada: User, time: Clock, receiver: Receiver
    ) -> None:
        waiting(webhook, time, 2)
        turn(webhook, time, REFUSED)
        webhook_change(webhook=webhook, by=ada, now=time.now, url=receiver.url + "/new")
        assert webhooks_call(now=time.now) == 1

    def test_one_that_is_removed_while_it_is_sent_to_leaves_nothing(
        self, webhook: Webhook, time: Clock
    ) -> None:
        waiting(webhook, time)

        def removed(*_: Any, **__: Any) -> Outcome:
            webhook_remove(webhook=webhook)
            return TOOK

        deliver(webhook, time, removed)
        assert not Delivery.objects.exists()


def test_the_log_is_forgotten_after_its_time_but_nothing_that_waits(webhook: Webhook, time: Clock) -> None:
    settled, pending = waiting(webhook, time, 2)
    Delivery.objects.filter(pk=settled.pk).update(state="delivered", next_try_at=None)
    assert deliveries_forget(before=time.now) == 0
    assert deliveries_forget(before=time.now + timedelta(seconds=1)) == 1
    assert Delivery.objects.get() == pending


@pytest.mark.django_db(transaction=True)
def test_parallel_workers_send_each_message_once(webhook: Webhook, receiver: Receiver) -> None:
    for _ in range(20):
        webhook_test(webhook=webhook, now=clock.now())

    def work() -> None:
        try:
            for _ in range(10):
                webhook_deliver(webhook_id=webhook.pk, clock=clock.now)
        finally:
            connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    while webhook_deliver(webhook_id=webhook.pk, clock=clock.now):
        pass
    ids = [got.headers["webhook-id"] for got in receiver.got]
    assert (len(ids), len(set(ids)), receiver.most_at_once) == (20, 20, 1)
