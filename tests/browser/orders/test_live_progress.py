"""Each step of each end appears on the screen automatically, and none is missed."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from portal.accounts.models import User
from portal.core import clock
from portal.vll.operations.line_removal import order_delete
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import answer

GIVEN_UP_S = 20
# Records each text that the live part shows.
_RECORD_SHOWN_TEXTS = """
() => {
  window.shown = [];
  const note = () => {
    const text = document.getElementById("vll-status").innerText;
    if (window.shown.at(-1) !== text) window.shown.push(text);
  };
  new MutationObserver(note).observe(document.querySelector("main"), { childList: true, subtree: true });
  note();
}
"""


def is_shown(page: Page, text: str, count: int) -> None:
    """Wait until the live part has shown the text so many times."""
    deadline = time.monotonic() + GIVEN_UP_S
    while not any(each.count(text) == count for each in page.evaluate("window.shown")):
        assert time.monotonic() < deadline, f"{text} was not shown {count} times"
        page.wait_for_timeout(50)


@pytest.mark.django_db(transaction=True)
def test_every_step_of_an_order_appears_on_the_screen(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    person = reader(live_server.url)
    person.be_signed_in("alice")
    person.open(f"/vlls/{vll.pk}/")
    page = person.page
    page.evaluate(_RECORD_SHOWN_TEXTS)
    status_part = page.locator("#vll-status")
    for place_order, status, shown in (
        (None, "verified", "In place"),
        (order_delete, "removed", "Removed"),
    ):
        if place_order is not None:
            place_order(user=alice, vll=vll, now=clock.now())
            page.reload()
            page.evaluate(_RECORD_SHOWN_TEXTS)
        expect(status_part).to_have_attribute("hx-trigger", "live, every 500ms")
        for count, side in enumerate("az", start=1):
            answer(vll, side, status)
            # The removal of the last end also removes the line, which is the third text.
            is_shown(page, shown, 3 if (side, status) == ("z", "removed") else count)
    expect(status_part.locator(".ll-health").get_by_text("Removed")).to_be_visible()
    expect(status_part).not_to_have_attribute("hx-trigger", "live, every 500ms")
    assert person.complaints == []
