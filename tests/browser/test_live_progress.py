"""Each step of each end comes to the screen by itself, and none is missed."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from portal.accounts.models import User
from portal.core import clock
from portal.vll.operations import order_delete
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import answer

GIVEN_UP_S = 20
# Writes down each text that stood in the live part.
_NOTE_WHAT_IS_SEEN = """
() => {
  window.seen = [];
  const note = () => {
    const text = document.getElementById("vll-status").innerText;
    if (window.seen.at(-1) !== text) window.seen.push(text);
  };
  new MutationObserver(note).observe(document.querySelector("main"), { childList: true, subtree: true });
  note();
}
"""


def is_shown(page: Page, text: str, count: int) -> None:
    """Once the live part has said this so many times."""
    deadline = time.monotonic() + GIVEN_UP_S
    while not any(each.count(text) == count for each in page.evaluate("window.seen")):
        assert time.monotonic() < deadline, f"{text} was not shown {count} times"
        page.wait_for_timeout(50)


@pytest.mark.django_db(transaction=True)
def test_every_step_of_an_order_comes_to_the_screen(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    person = reader(live_server.url)
    person.be_signed_in("alice")
    person.open(f"/vlls/{vll.pk}/")
    page = person.page
    page.evaluate(_NOTE_WHAT_IS_SEEN)
    status_part = page.locator("#vll-status")
    for ask, status, said in (
        (None, "verified", "In place"),
        (order_delete, "removed", "Removed"),
    ):
        if ask is not None:
            ask(user=alice, vll=vll, now=clock.now())
            page.reload()
            page.evaluate(_NOTE_WHAT_IS_SEEN)
        expect(status_part).to_have_attribute("hx-trigger", "live, every 500ms")
        for count, side in enumerate("az", start=1):
            answer(vll, side, status)
            # With its last end the line itself is removed, which is the third.
            is_shown(page, said, 3 if (side, status) == ("z", "removed") else count)
    expect(status_part.locator(".ll-health").get_by_text("Removed")).to_be_visible()
    expect(status_part).not_to_have_attribute("hx-trigger", "live, every 500ms")
    assert person.complaints == []
