"""A refused form on a long page comes back with its error in sight and with what was entered."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from portal.accounts.models import Customer, User
from portal.vll.models import Order
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db(transaction=True)


def there(reader: Callable[..., Reader], url: str, who: str, scripts: bool = True) -> Reader:
    person = reader(url, viewport={"width": 390, "height": 600}, java_script_enabled=scripts)
    person.be_signed_in(who)
    return person


def expect_error_in_sight(page: Page, label: str, error: str) -> None:
    field = page.get_by_label(label, exact=True).and_(page.locator('[aria-invalid="true"]'))
    expect(field).to_be_focused()
    expect(field).to_be_in_viewport()
    expect(page.get_by_text(error)).to_be_in_viewport()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_rejection_without_a_reason_shows_its_error(
    live_server: Any, isp: Isp, alice: User, nora: User, reader: Callable[..., Reader], scripts: bool
) -> None:
    Customer.objects.update(approve_up_to_bps=1)
    held = order(isp, alice)
    assert held.state == "held"
    person = there(reader, live_server.url, "nora", scripts)
    person.open(f"/noc/orders/{held.pk}/")
    person.page.get_by_role("button", name="Reject this order").click()
    expect_error_in_sight(person.page, "Reason", "Give a reason: the customer can read it.")
    if scripts:
        # The address is the page's, so that reloading leads back to it.
        expect(person.page).to_have_url(re.compile(rf"/noc/orders/{held.pk}/$"))
        person.page.get_by_label("Reason").fill("No capacity")
        person.page.get_by_role("button", name="Reject this order").click()
        expect(person.page.get_by_text("The order is rejected")).to_be_visible()
        assert Order.objects.get(pk=held.pk).state == "rejected"
    assert person.complaints == []


@pytest.mark.parametrize(
    ("fold", "button", "label", "error"),
    [
        ("Freeze: change nothing on it", "Freeze it", "Why", "Say why the router is frozen."),
        (
            "This router will not come back",
            "Declare it dead",
            "Why it will not come back",
            "Give a reason why the router is dead: it is kept.",
        ),
    ],
)
def test_a_folded_form_of_a_router_opens_at_its_error(
    live_server: Any,
    isp: Isp,
    nina: User,
    reader: Callable[..., Reader],
    fold: str,
    button: str,
    label: str,
    error: str,
) -> None:
    person = there(reader, live_server.url, "nina")
    person.open(f"/noc/routers/{isp.routers['rhino'].pk}/")
    person.page.get_by_text(fold).click()
    person.page.get_by_role("button", name=button).click()
    expect_error_in_sight(person.page, label, error)
    assert person.accessibility_violations() == []


def test_a_refused_calibration_keeps_what_was_pasted(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    person = there(reader, live_server.url, "nora")
    person.open(f"/noc/routers/{isp.routers['rhino'].pk}/")
    page = person.page
    page.get_by_text("Use what was measured").click()
    label = "Everything that longline-agent calibrate -json printed on rhino"
    page.get_by_label(label).fill("rhino, VPP 25.10")
    page.get_by_role("button", name="Use it").click()
    expect_error_in_sight(page, label, "This is not what longline-agent calibrate -json prints")
    expect(page.get_by_label(label)).to_have_value("rhino, VPP 25.10")


def test_a_colleague_without_a_name_is_asked_for_it_where_the_form_is(
    live_server: Any, nina: User, reader: Callable[..., Reader]
) -> None:
    person = there(reader, live_server.url, "nina")
    person.open("/noc/staff/")
    page = person.page
    page.evaluate("document.querySelectorAll('form').forEach((form) => { form.noValidate = true; })")
    page.get_by_role("button", name=re.compile("Add")).click()
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("main [aria-invalid=true]").first).to_be_focused()
