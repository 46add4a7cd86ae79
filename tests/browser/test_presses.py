"""A press on a button counts, whatever arrives between its going down and its coming up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def middle(page: Page, button: str) -> dict[str, float]:
    """Of the button, in the window."""
    found = page.get_by_role("button", name=button)
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    assert box is not None
    return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}


def press(page: Page, button: str) -> None:
    """Put the mouse down on the button."""
    page.mouse.move(**middle(page, button))
    page.mouse.down()


def open_order_form(person: Reader) -> Route:
    """Before the answer says what is missing: the route on which it is kept."""
    person.be_signed_in("alice")
    return person.held_back("**/orders/new/check/", lambda: person.open("/orders/new/"))


@contextmanager
def an_answer_arrives(page: Page) -> Iterator[None]:
    """To what is asked, or told to go on, within: afterwards it is in its place, if it is not kept back."""
    page.evaluate(
        """() => {
          window.arrived = new Promise((done) => {
            document.addEventListener("htmx:xhr:loadend", () => done(true), { once: true });
          });
        }"""
    )
    yield
    page.evaluate("window.arrived")


def silent(router: str, isp: Isp) -> None:
    RouterSilence.objects.create(router=isp.routers[router], since=clock.now() - timedelta(minutes=5))
    # No relay runs here: ten seconds later what waits for it would be an alarm of its own.
    Outbox.objects.all().delete()
    alarms_watch(now=clock.now())


def test_a_press_counts_though_an_answer_arrives_meanwhile(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    """What is missing comes above the button, which moves down from under the mouse."""
    person = reader(live_server.url)
    check = open_order_form(person)
    press(person.page, "Order this line")
    with an_answer_arrives(person.page):
        check.continue_()
    person.page.mouse.up()
    expect(person.page.get_by_role("alert")).to_be_visible()
    assert person.complaints == []


def test_a_finger_counts_though_an_answer_arrives_meanwhile(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    """Its click comes after it has been lifted."""
    person = reader(live_server.url, has_touch=True, viewport={"width": 390, "height": 844})
    check = open_order_form(person)
    fingers = person.page.context.new_cdp_session(person.page)
    touched = [middle(person.page, "Order this line")]
    fingers.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": touched})
    with an_answer_arrives(person.page):
        check.continue_()
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(person.page.get_by_role("alert")).to_be_visible()
    assert person.complaints == []


@pytest.mark.parametrize("ends", ["elsewhere", "never"])
def test_what_arrived_during_a_press_is_shown_after_it(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader], ends: str
) -> None:
    """Also of one that does nothing itself."""
    person = reader(live_server.url)
    check = open_order_form(person)
    press(person.page, "Order this line")
    with an_answer_arrives(person.page):
        check.continue_()
    obstacle = person.page.locator("#obstacle")
    expect(obstacle).to_have_text("")
    if ends == "elsewhere":
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
    with an_answer_arrives(person.page):
        person.page.locator("#alarms").dispatch_event("live")
    person.page.mouse.up()
    expect(person.page.get_by_role("heading", name="Acknowledged (1)", exact=True)).to_be_visible()
    assert "rhino" in OperatorState.objects.get().alarm.name
    assert person.complaints == []
