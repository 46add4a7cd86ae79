"""A message reports the result of an action, and disappears once the page shows something newer."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_disappears_when_it_is_outdated(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    line = order(isp, alice, description="Milk run").vll
    activate(line)
    person = reader(live_server.url)
    person.be_signed_in("alice")
    person.open(f"/vlls/{line.pk}/suspend/")
    person.page.get_by_role("button", name="Suspend this line").click()
    message = person.page.locator(".ll-messages .ll-note-success")
    expect(message).to_have_count(1)
    line.refresh_from_db()
    activate(line)
    expect(person.page.locator(".ll-health")).to_contain_text("Suspended")
    expect(message).to_have_count(0, timeout=15_000)


def test_a_disabled_primary_button_has_the_colour_of_an_enabled_one(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.be_signed_in("alice")
    person.open("/orders/new/")
    colours = person.page.evaluate(
        """() => [false, true].map((disabled) => {
          const button = document.createElement("button");
          Object.assign(button, { className: "btn btn-primary", disabled });
          document.querySelector("main").append(button);
          return getComputedStyle(button).backgroundColor;
        })"""
    )
    assert colours[0] == colours[1]
