"""Each step of each end is on the screen within a second of its event, and none is missed."""

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

PASSWORD = "correct horse battery"
A_SECOND_S = 1.0
GIVEN_UP_S = 20
# Writes down when a text first stood in the live part, by the clock that the test has too.
_NOTE_WHEN_SEEN = """
() => {
  window.seen = [];
  const note = () => {
    const text = document.getElementById("vll-status").innerText;
    if (window.seen.at(-1)?.text !== text) window.seen.push({ at: Date.now() / 1000, text });
  };
  new MutationObserver(note).observe(document.querySelector("main"), { childList: true, subtree: true });
  note();
}
"""


def shown_at(page: Page, text: str, count: int) -> float:
    """When the live part first said this so many times (epoch s)."""
    deadline = time.monotonic() + GIVEN_UP_S
    while time.monotonic() < deadline:
        seen: list[dict[str, Any]] = page.evaluate("window.seen")
        for each in seen:
            if each["text"].count(text) == count:
                return float(each["at"])
        page.wait_for_timeout(50)
    raise AssertionError(f"{text} was not shown {count} times")


@pytest.mark.django_db(transaction=True)
def test_every_step_of_an_order_shows_within_a_second(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    person = reader(live_server.url)
    person.sign_in("alice", PASSWORD)
    person.open(f"/vlls/{vll.pk}/")
    page = person.page
    page.evaluate(_NOTE_WHEN_SEEN)
    late = {}
    for ask, status, said in (
        (None, "verified", "Applied and verified"),
        (order_delete, "removed", "Removed"),
    ):
        if ask is not None:
            ask(user=alice, vll=vll, now=clock.now())
            page.reload()
            page.evaluate(_NOTE_WHEN_SEEN)
        for count, side in enumerate("az", start=1):
            answer(vll, side, status)
            happened = time.time()
            late[side, status] = shown_at(page, said, count) - happened
    assert {step: after for step, after in late.items() if after > A_SECOND_S} == {}, late
    expect(page.locator("#vll-status").get_by_text("Terminated")).to_be_visible()
    expect(page.locator("#vll-status")).not_to_have_attribute("hx-trigger", "every 500ms")
    assert person.complaints == []
