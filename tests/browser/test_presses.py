"""A press on a button counts, even if a response arrives between mouse down and mouse up."""

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
from portal.inventory.models import RouterSilence
from tests.browser.reader import Reader
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db(transaction=True)


def middle(page: Page, button: str) -> dict[str, float]:
    """Return the middle of the button in the window."""
    found = page.get_by_role("button", name=button)
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    assert box is not None
    return {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}


def press(page: Page, button: str) -> None:
    """Press the mouse on the button, without releasing it."""
    page.mouse.move(**middle(page, button))
    page.mouse.down()


def open_order_form(person: Reader) -> Route:
    """Open the form and return the route on which the response about missing fields waits."""
    person.be_signed_in("alice")
    return person.intercept("**/orders/new/check/", lambda: person.open("/orders/new/"))


@contextmanager
def response_arrives(page: Page) -> Iterator[None]:
    """Wait until the response to a request of the block has arrived, and is on the page unless deferred."""
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
    alarms_watch(now=clock.now())


def test_a_press_counts_although_a_response_arrives_meanwhile(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    """The list of missing fields appears above the button and moves the button away from the mouse."""
    person = reader(live_server.url)
    check = open_order_form(person)
    press(person.page, "Order this line")
    with response_arrives(person.page):
        check.continue_()
    person.page.mouse.up()
    expect(person.page.get_by_role("alert")).to_be_visible()
    assert person.complaints == []


def test_a_touch_counts_although_a_response_arrives_meanwhile(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    """A touch causes a click only when the finger is lifted."""
    person = reader(live_server.url, has_touch=True, viewport={"width": 390, "height": 844})
    check = open_order_form(person)
    fingers = person.page.context.new_cdp_session(person.page)
    touched = [middle(person.page, "Order this line")]
    fingers.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": touched})
    with response_arrives(person.page):
        check.continue_()
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(person.page.get_by_role("alert")).to_be_visible()
    assert person.complaints == []


@pytest.mark.parametrize("ends", ["elsewhere", "never"])
def test_a_response_that_arrived_during_a_press_is_shown_after_it(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader], ends: str
) -> None:
    """It is also shown after a press that has no effect itself."""
    person = reader(live_server.url)
    check = open_order_form(person)
    press(person.page, "Order this line")
    with response_arrives(person.page):
        check.continue_()
    obstacle = person.page.locator("#obstacle")
    expect(obstacle).to_have_text("")
    if ends == "elsewhere":
        person.page.mouse.move(1, 1)
        person.page.mouse.up()
    expect(obstacle).to_contain_text("Still missing")
    assert person.complaints == []


def test_a_press_counts_on_a_button_that_is_replaced_meanwhile(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    """The response to the form replaces the new list."""
    silent("rhino", isp)
    person = reader(live_server.url)
    person.be_signed_in("nora")
    person.open("/noc/")
    press(person.page, "Acknowledge rhino is silent")
    silent("hippo", isp)
    with response_arrives(person.page):
        person.page.locator("#alarms").dispatch_event("live")
    person.page.mouse.up()
    expect(person.page.get_by_role("heading", name="Acknowledged (1)", exact=True)).to_be_visible()
    assert "rhino" in OperatorState.objects.get().alarm.name
    assert person.complaints == []
