"""Webhooks on pages."""

import re

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_delivery import webhook_deliver
from tests.integration.notifications.receiver import Receiver
from tests.integration.web_pages.browser import save, signed_in, text, version_in

pytestmark = pytest.mark.django_db
FORM = {"url": "https://hooks.example.net/in", "description": "Tickets", "types": ["vll.down"]}


def test_an_admin_adds_one_and_sees_its_secret_once(ada: User, dairy: Customer) -> None:
    browser = signed_in(ada)
    # The page has the link in its header and in the empty list.
    assert text(browser.get("/webhooks/")).count("Add a webhook") == 2
    answer = browser.post("/webhooks/add/", {**FORM, "customer": dairy.pk})
    assert answer.status_code == 200
    secret = re.search(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode())
    assert secret
    made = Webhook.objects.get()
    assert (made.customer, made.types, made.created_by) == (dairy, ["vll.down"], "ada")
    for address in ("/webhooks/", f"/webhooks/{made.pk}/"):
        shown = text(browser.get(address))
        assert "Tickets" in shown
        assert "whsec_" not in shown


def test_a_refusal_is_shown_at_its_field_and_keeps_the_input(ada: User, dairy: Customer) -> None:
    answer = signed_in(ada).post("/webhooks/add/", {**FORM, "url": "https://10.0.0.1/", "customer": dairy.pk})
    assert answer.status_code == 422
    assert "10.0.0.1 is not a public address" in text(answer)
    assert 'value="Tickets"' in answer.content.decode()


def test_events_for_the_noc_only_are_not_offered_to_customers(
    ada: User, webhook: Webhook, nina: User
) -> None:
    for address in ("/webhooks/add/", f"/webhooks/{webhook.pk}/change/"):
        offered = text(signed_in(ada).get(address))
        assert "vll.down" in offered
        assert "router.silent" not in offered
    assert "router.silent" in text(signed_in(nina).get("/webhooks/add/"))


def test_operators_see_that_it_is_an_admins_business(alice: User, webhook: Webhook) -> None:
    browser = signed_in(alice)
    assert "An admin of your company" in text(browser.get("/webhooks/"))
    assert browser.get("/webhooks/add/").status_code == 403
    assert browser.get(f"/webhooks/{webhook.pk}/").status_code == 403


def test_a_test_is_sent_and_sent_again_from_the_log(ada: User, webhook: Webhook, receiver: Receiver) -> None:
    browser, here = signed_in(ada), f"/webhooks/{webhook.pk}/"
    receiver.answers = [503, 204]
    assert browser.post(f"{here}test/")["Location"] == here
    webhook_deliver(webhook_id=webhook.pk, clock=clock.now)
    shown = text(browser.get(here))
    assert "The receiver refused it: HTTP 503" in shown
    Delivery.objects.update(state="failed", next_try_at=None)
    Webhook.objects.update(paused_until=None)
    delivery = Delivery.objects.get()
    browser.post(f"/webhooks/deliveries/{delivery.pk}/again/")
    webhook_deliver(webhook_id=webhook.pk, clock=clock.now)
    shown = text(browser.get(here))
    assert "HTTP 204" in shown
    assert "Delivered" in shown


def test_what_a_receiver_answers_stays_text(ada: User, webhook: Webhook, receiver: Receiver) -> None:
    receiver.answers, receiver.body = [500], b"<script>alert(1)</script>\0\xff"
    signed_in(ada).post(f"/webhooks/{webhook.pk}/test/")
    webhook_deliver(webhook_id=webhook.pk, clock=clock.now)
    page = signed_in(ada).get(f"/webhooks/{webhook.pk}/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_it_is_changed_disabled_enabled_given_another_secret_and_removed(
    ada: User, webhook: Webhook, receiver: Receiver
) -> None:
    browser, here = signed_in(ada), f"/webhooks/{webhook.pk}/"
    save(browser, f"{here}change/", {"url": receiver.url, "description": "Other", "types": []})
    browser.post(f"{here}disable/")
    assert "Disabled by hand" in text(browser.get(here))
    browser.post(f"{here}enable/")
    shown = browser.post(f"{here}secret/")
    assert "whsec_" in shown.content.decode()
    assert "The previous one also signs until" in text(shown)
    webhook.refresh_from_db()
    assert (webhook.description, webhook.disabled_at) == ("Other", None)
    assert "Remove this webhook?" in text(browser.get(f"{here}remove/"))
    assert browser.post(f"{here}remove/")["Location"] == "/webhooks/"
    assert not Webhook.objects.exists()


def test_the_second_of_two_editors_sees_the_change_of_the_first(
    ada: User, nina: User, webhook: Webhook, receiver: Receiver
) -> None:
    address, browser = f"/webhooks/{webhook.pk}/change/", signed_in(ada)
    seen = browser.get(address)
    types = ["vll.terminated", "vll.active"]
    ninas = {"url": receiver.url, "description": webhook.description, "types": types}
    assert save(signed_in(nina), address, ninas).status_code == 302
    adas = {"url": receiver.url, "description": "Other", "types": webhook.types}
    refused = browser.post(address, {"version": version_in(seen), **adas})
    assert refused.status_code == 409
    assert "Somebody has changed this since you opened it" in text(refused)
    assert refused.context["form"].errors["types"] == ["It is vll.active, vll.terminated now."]
    webhook.refresh_from_db()
    assert (webhook.description != "Other", webhook.types) == (True, sorted(types))
    decided = {"version": version_in(refused), **adas, "types": types}
    assert browser.post(address, decided).status_code == 302
    webhook.refresh_from_db()
    assert (webhook.description, webhook.types) == ("Other", sorted(types))


def test_the_noc_sees_all_and_its_admins_add_their_own(nora: User, nina: User, webhook: Webhook) -> None:
    assert signed_in(nora).get(f"/webhooks/{webhook.pk}/").status_code == 200
    assert signed_in(nora).post(f"/webhooks/{webhook.pk}/test/").status_code == 403
    signed_in(nina).post("/webhooks/add/", {**FORM, "customer": ""})
    own = Webhook.objects.get(customer=None)
    assert "all, for the NOC" in text(signed_in(nina).get("/webhooks/"))
    assert signed_in(nora).get(f"/noc/webhooks/{own.pk}/history/").status_code == 200
