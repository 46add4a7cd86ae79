"""Values that a newer release stored are shown as they are, and no page or task fails because of them.

Both releases run at the same time while machines are upgraded one after another.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.core import clock
from portal.diagnosis.diagnosis import stored_sentence
from portal.imports.models import Import, ImportState
from portal.imports.operations import first_running, import_run
from portal.inventory.models import ObservedRouter
from portal.notifications.mail_delivery import mail_send, mails_call
from portal.notifications.models import Delivery, Mail, Webhook
from portal.notifications.webhook_operations import webhook_create
from portal.vll.models import ActivationTest, Order, Vll, VllEnd
from portal.vll.operations.state_compare_and_swap import ForbiddenTransition, lifecycle_move, order_move
from portal.vll.sentences import activation_test_sentence, failure_sentence
from tests.integration.api.test_api_v1 import client
from tests.integration.imports.files import staged
from tests.integration.isp import Isp
from tests.integration.newer_release import allow_unknown
from tests.integration.orders import end, order
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
UNKNOWN = "warped"


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def browser(nora: User) -> Client:
    return signed_in(nora)


@pytest.mark.parametrize("column", ["state", "action"])
def test_an_order(isp: Isp, alice: User, browser: Client, column: str) -> None:
    placed = order(isp, alice)
    allow_unknown("vll_order", f"order_{column}_is_a_known_{column}")
    Order.objects.update(**{column: UNKNOWN})
    for page in ("/orders/", f"/vlls/{placed.vll_id}/", f"/noc/orders/{placed.pk}/"):
        answer = browser.get(page)
        assert answer.status_code == 200, page
        assert UNKNOWN in text(answer), page
    api = client(alice)
    assert api.get(f"/api/v1/orders/{placed.pk}").json()[column] == UNKNOWN
    job = api.get(f"/api/v1/jobs/{placed.pk}").json()
    assert (job[column], job["status"]) == (UNKNOWN, "running" if column == "state" else "pending")


def test_no_order_or_line_leaves_a_state_that_this_release_does_not_know(
    isp: Isp, alice: User, now: datetime
) -> None:
    placed = order(isp, alice)
    placed.state = placed.vll.lifecycle = UNKNOWN
    with pytest.raises(ForbiddenTransition):
        order_move(placed, "failed", now=now)
    with pytest.raises(ForbiddenTransition):
        lifecycle_move(placed.vll, "active", now=now)


def test_the_status_of_an_end(isp: Isp, vll: Vll, browser: Client) -> None:
    VllEnd.objects.update(status=UNKNOWN)
    for page in (f"/vlls/{vll.pk}/", f"/noc/routers/{isp.routers['rhino'].pk}/"):
        answer = browser.get(page)
        assert answer.status_code == 200, page
        assert UNKNOWN in text(answer), page


def test_what_a_router_can_do(isp: Isp, alice: User, vll: Vll, browser: Client) -> None:
    VllEnd.objects.update(policed=False)
    ObservedRouter.objects.update(policing=UNKNOWN, encapsulations=["vxlan", UNKNOWN])
    assert browser.get(f"/vlls/{vll.pk}/").status_code == 200
    ends = {
        f"{side}_end": end(isp, f"{name}:host-cust1", outer=200)
        for side, name in (("a", "rhino"), ("z", "hippo"))
    }
    assert order(isp, alice, **ends).vll.encapsulation == "vxlan"


def test_an_import_waits_for_a_worker_of_its_release(nora: User, browser: Client, now: datetime) -> None:
    newer, known = (staged(nora, "sites", f"name\n{name}\n", at_once=True) for name in ("Bern", "Oslo"))
    Import.objects.filter(pk=newer.pk).update(kind=UNKNOWN)
    assert first_running() == known
    for _ in range(20):
        import_run(import_id=newer.pk, turn=newer.turn)
    newer.refresh_from_db()
    assert (newer.state, newer.failures) == (ImportState.IMPORTING, 0)
    import_run(import_id=known.pk, turn=known.turn)
    known.refresh_from_db()
    assert known.state == ImportState.COMPLETED
    assert browser.get("/noc/imports/").status_code == 200
    assert browser.get(f"/noc/imports/{newer.pk}/").status_code == 404
    api = client(nora)
    assert [each["id"] for each in api.get("/api/v1/imports").json()["results"]] == [str(known.pk)]
    for call in (api.get(f"/api/v1/imports/{newer.pk}"), api.post(f"/api/v1/imports/{newer.pk}/begin")):
        assert call.status_code == 404


def test_a_mail_waits_for_a_worker_of_its_release(alice: User, now: datetime, mailoutbox: list[Any]) -> None:
    waiting = Mail.objects.create(
        user=alice, kind=f"vll.{UNKNOWN}", event_id=1, created_at=now, next_try_at=now - timedelta(seconds=1)
    )
    assert mails_call(now=now) == 0
    mail_send(mail_id=waiting.pk, now=now)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.tries, waiting.sending_until) == (Mail.State.PENDING, 0, None)
    assert mailoutbox == []


def test_the_reason_why_a_webhook_is_disabled_and_a_delivery(alice: User, nina: User, now: datetime) -> None:
    webhook, _secret = webhook_create(user=nina, customer=None, url="https://example.net/", now=now)
    allow_unknown("notifications_webhook", "a_webhook_is_disabled_for_a_known_reason")
    allow_unknown("notifications_delivery", "delivery_state_is_a_known_state")
    Webhook.objects.update(disabled_at=now, disabled_because=UNKNOWN)
    Delivery.objects.create(
        webhook=webhook, event_id=1, type="vll.up", body="{}", created_at=now, state=UNKNOWN, next_try_at=None
    )
    answer = signed_in(nina).get(f"/webhooks/{webhook.pk}/")
    assert answer.status_code == 200
    assert f"Disabled: {UNKNOWN}" in text(answer)


def test_the_finding_of_a_verdict_that_was_kept() -> None:
    verdict = {"code": f"a-{UNKNOWN}", "sentence": "It is somewhere else."}
    facts = {"finding": UNKNOWN, "side": "a", "router": "rhino", "port": "", "at": None, "removing": False}
    assert stored_sentence(verdict, facts) == "It is somewhere else."


def test_the_reason_of_an_activation_test(vll: Vll, now: datetime) -> None:
    test = ActivationTest(vll=vll, frame=1514, created_at=now, state="failed", reason=UNKNOWN, conditions={})
    assert UNKNOWN in activation_test_sentence(test)
    failure = {"code": f"line-test-{UNKNOWN}", "message": "It went too far.", "links": []}
    assert failure_sentence(failure) == "It went too far."
