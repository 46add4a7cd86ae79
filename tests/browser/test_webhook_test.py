"""The result of a webhook's test appears on the open page."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.notifications.models import Delivery, Webhook
from tests.browser.reader import Reader
from tests.browser.test_live_pages import live, open_without_polling
from tests.integration.live_process import LiveProcess

__all__ = ["live"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def webhook(dairy: Customer) -> Webhook:
    now = clock.now()
    return Webhook.objects.create(
        customer=dairy, url="https://hooks.example.net/in", secret="s", secret_set_at=now, created_at=now
    )


def deliver() -> None:
    """Save a delivery as the worker does after the receiver has accepted it."""
    Delivery.objects.update(state="delivered", next_try_at=None, tries=1)


def send_a_test(person: Reader) -> None:
    person.page.get_by_role("button", name="Send a test").click()
    expect(person.page.get_by_text("The test is on its way")).to_be_visible()
    expect(person.page.locator("#webhook-deliveries")).to_contain_text("Pending")


def test_the_result_appears_by_polling_without_a_stream(
    live_server: Any, webhook: Webhook, ada: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.be_signed_in("ada")
    person.open(f"/webhooks/{webhook.pk}/")
    send_a_test(person)
    deliver()
    expect(person.page.locator("#webhook-deliveries")).to_contain_text("Delivered")
    assert person.accessibility_violations() == []
    assert person.complaints == []


def test_the_result_appears_at_once_through_the_stream(
    live: LiveProcess, live_server: Any, webhook: Webhook, ada: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.be_signed_in("ada")
    page = open_without_polling(person, f"/webhooks/{webhook.pk}/")
    with page.expect_event("response", lambda answer: "/live/?" in answer.url):
        send_a_test(person)
    deliver()
    expect(page.locator("#webhook-deliveries")).to_contain_text("Delivered")
    assert person.complaints == []
