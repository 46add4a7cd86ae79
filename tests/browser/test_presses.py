"""A press on a button counts, whatever arrives between its going down and its coming up."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from portal.accounts.models import User
from portal.alarms.models import OperatorState
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from portal.events.models import Outbox
from portal.inventory.models import RouterSilence
from tests.browser.reader import Reader
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db(transaction=True)


def press(page: Page, button: str) -> None:
    """Put the mouse down in the middle of the button."""
    box = page.get_by_role("button", name=button).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()


def silent(router: str, isp: Isp) -> None:
    RouterSilence.objects.create(router=isp.routers[router], since=clock.now() - timedelta(minutes=5))
    # No relay runs here: ten seconds later what waits for it would be an alarm of its own.
    Outbox.objects.all().delete()
    alarms_watch(now=clock.now())


def test_a_press_counts_though_an_answer_arrives_meanwhile(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    """What is missing comes above the button, which moves down from under the mouse."""
    person, kept = reader(live_server.url), list[Route]()
    person.be_signed_in("alice")
    person.page.route("**/orders/new/check/", lambda route: kept.append(route))
    person.open("/orders/new/")
    expect(person.page.locator("#obstacle")).to_have_text("")
    press(person.page, "Order this line")
    with person.page.expect_response("**/orders/new/check/"):
        kept.pop().continue_()
    # Long enough for it to be put in its place.
    person.page.wait_for_timeout(200)
    person.page.mouse.up()
    expect(person.page.get_by_role("alert")).to_be_visible()
    assert person.complaints == []


def test_what_arrived_during_a_press_is_shown_after_it(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    """One that ends elsewhere, and so does nothing itself."""
    person, kept = reader(live_server.url), list[Route]()
    person.be_signed_in("alice")
    person.page.route("**/orders/new/check/", lambda route: kept.append(route))
    person.open("/orders/new/")
    press(person.page, "Order this line")
    with person.page.expect_response("**/orders/new/check/"):
        kept.pop().continue_()
    person.page.wait_for_timeout(200)
    obstacle = person.page.locator("#obstacle")
    expect(obstacle).to_have_text("")
    person.page.mouse.move(1, 1)
    person.page.mouse.up()
    expect(obstacle).to_contain_text("Still missing")
    assert person.complaints == []


def test_a_press_counts_on_what_is_replaced_meanwhile(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    """The form's answer goes where the list stands by then."""
    silent("rhino", isp)
    person = reader(live_server.url)
    person.be_signed_in("nora")
    person.open("/noc/")
    press(person.page, "Acknowledge rhino is silent")
    silent("hippo", isp)
    with person.page.expect_response(lambda answer: answer.url.split("?")[0].endswith("/noc/")):
        person.page.locator("#alarms").dispatch_event("live")
    person.page.wait_for_timeout(200)
    person.page.mouse.up()
    expect(person.page.get_by_role("heading", name="Acknowledged (1)", exact=True)).to_be_visible()
    assert "rhino" in OperatorState.objects.get().alarm.name
    assert person.complaints == []
