"""Lines can be ordered with the keyboard alone, the page shows a preview, and Back keeps the form."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from portal.accounts.models import User
from portal.core import clock
from portal.vll.models import Order, Vll
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import end, order

pytestmark = pytest.mark.django_db(transaction=True)
MAX_INPUTS = 6
MAX_TABS = 40


@pytest.fixture
def alice_browser(live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]) -> Reader:
    person = reader(live_server.url)
    person.be_signed_in("alice")
    return person


def tab_to(page: Page, label: str, group: str = "") -> None:
    """Press Tab, like a user without a mouse, until the field or button with that label has the focus."""
    scope = page.get_by_role("group", name=group) if group else page
    wanted = (
        scope.get_by_label(label, exact=True).or_(scope.get_by_role("button", name=label, exact=True)).first
    )
    for _ in range(MAX_TABS):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{label} does not get the focus in {MAX_TABS} steps")


def fill_by_keyboard(page: Page, isp: Isp) -> int:
    """Fill in the form and return the number of inputs that it took."""
    places = sorted(isp.ports)
    inputs: list[tuple[str, str, str | int]] = [
        # The number of key presses from the top of the list of ports.
        ("Port", "A end", 1 + places.index("rhino:host-cust1")),
        ("Outer VLAN", "A end", "100"),
        ("Port", "Z end", 1 + places.index("hippo:host-cust1")),
        ("Bandwidth", "", "250"),
    ]
    for label, group, typed in inputs:
        tab_to(page, label, group)
        if isinstance(typed, str):
            page.keyboard.type(typed)
            continue
        # From the top of the list, because the form may have selected a port.
        page.keyboard.press("Home")
        for _ in range(typed):
            page.keyboard.press("ArrowDown")
    return len(inputs)


def test_a_line_is_ordered_by_keyboard_with_few_inputs(isp: Isp, alice_browser: Reader) -> None:
    page = alice_browser.page
    alice_browser.open("/orders/new/")
    assert fill_by_keyboard(page, isp) <= MAX_INPUTS
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    expect(page.get_by_text("Packets of up to 8954 bytes would fit.")).to_be_visible()
    expect(page.locator(".ll-drawing text", has_text="MTU 9000")).to_be_visible()
    tab_to(page, "Order this line")
    page.keyboard.press("Enter")
    page.wait_for_url("**/vlls/*/")
    vll = Vll.objects.get()
    assert (vll.cir_bps, vll.encapsulation, str(vll.ends.get(side="a").port)) == (
        250_000_000,
        "vxlan",
        "rhino:host-cust1",
    )
    assert alice_browser.complaints == []


def test_another_line_takes_four_clicks_and_four_keys(isp: Isp, alice: User, alice_browser: Reader) -> None:
    """A user needs one click more than Playwright, to choose from the select."""
    order(
        isp, alice, a_end=end(isp, "rhino:host-cust1", outer=7), z_end=end(isp, "hippo:host-cust1", outer=7)
    )
    page = alice_browser.page
    alice_browser.open("/")
    page.get_by_role("link", name="Order a line").first.click()
    z_port = page.get_by_role("group", name="Z end").get_by_label("Port")
    expect(z_port).to_be_focused()
    z_port.select_option(str(isp.ports["hippo:host-cust1"].pk))
    page.get_by_label("Bandwidth", exact=True).click()
    page.keyboard.type("100")
    page.keyboard.press("Enter")
    page.wait_for_url("**/vlls/*/")
    ordered = Vll.objects.exclude(ends__outer_vlan=7).get()
    assert (ordered.cir_bps, [str(each.port) for each in ordered.ends.order_by("side")]) == (
        100_000_000,
        ["rhino:host-cust1", "hippo:host-cust1"],
    )
    assert alice_browser.complaints == []


def test_preview_follows_the_typed_values(isp: Isp, alice_browser: Reader) -> None:
    page = alice_browser.page
    alice_browser.open("/orders/new/")
    expect(page.get_by_text("Still missing:")).to_be_visible()
    fill_by_keyboard(page, isp)
    mtu = page.get_by_label("Largest packet (MTU)")
    mtu.fill("9100")
    expect(page.get_by_text("Missing")).to_be_visible()
    expect(page.get_by_text("Not possible as it is")).to_be_visible()
    assert alice_browser.accessibility_violations() == []
    mtu.fill("8950")
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    expect(page.get_by_text("Spare", exact=True).first).to_be_visible()
    assert alice_browser.accessibility_violations() == []
    assert not Vll.objects.exists()
    assert alice_browser.complaints == []


def test_missing_fields_of_an_empty_order_stay_marked_until_filled_in(
    isp: Isp, alice_browser: Reader
) -> None:
    page = alice_browser.page
    alice_browser.open("/orders/new/")
    page.get_by_role("button", name="Order this line").click()
    expect(page.locator("#error-summary")).to_be_focused()
    bandwidth, port = page.get_by_label("Bandwidth", exact=True), page.locator("#id_a_end-port")
    invalid = page.locator(".ll-field-invalid")
    with page.expect_response("**/orders/new/check/"):
        page.get_by_label("Name or reference").press_sequentially("M")
    expect(invalid).to_have_count(3)
    expect(port).to_have_attribute("aria-invalid", "true")
    bandwidth.fill("10")
    expect(invalid).to_have_count(2)
    port.select_option(str(isp.ports["rhino:host-cust1"].pk))
    expect(invalid).to_have_count(1)
    assert alice_browser.accessibility_violations() == []
    assert alice_browser.complaints == []


def test_taken_vlan_is_reported_once_and_a_button_leaves_the_choice_to_the_portal(
    isp: Isp, alice: User, alice_browser: Reader
) -> None:
    taken = order(isp, alice).vll.ends.get(side="a").outer_vlan
    page = alice_browser.page
    alice_browser.open("/orders/new/")
    for place, port in (("a_end", "rhino:host-cust1"), ("z_end", "hippo:host-cust1")):
        page.locator(f"#id_{place}-port").select_option(str(isp.ports[port].pk))
    page.get_by_label("Bandwidth", exact=True).fill("10")
    outer = page.get_by_role("group", name="A end").get_by_label("Outer VLAN")
    outer.fill(str(taken))
    expect(page.get_by_text("is used by another line")).to_have_count(1)
    expect(page.locator("#feasibility").get_by_role("link", name="A end: Outer VLAN")).to_be_visible()
    assert alice_browser.accessibility_violations() == []
    page.get_by_role("button", name="Let us choose").click()
    expect(outer).to_have_value("any")
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    expect(page.get_by_role("button", name="Let us choose")).to_have_count(0)
    assert alice_browser.complaints == []


def test_back_keeps_the_typed_values(isp: Isp, alice_browser: Reader) -> None:
    page = alice_browser.page
    alice_browser.open("/orders/new/")
    fill_by_keyboard(page, isp)
    page.get_by_role("group", name="Z end").get_by_label("What it carries").select_option("qinq")
    page.get_by_role("group", name="Z end").get_by_label("Inner VLAN").fill("30")
    page.get_by_role("link", name="Your reservations").click()
    page.get_by_role("heading", name="Reservations", level=1).wait_for()
    page.go_back()
    z_end = page.get_by_role("group", name="Z end")
    expect(z_end.get_by_label("Inner VLAN")).to_have_value("30")
    expect(z_end.get_by_label("Inner VLAN")).to_be_visible()
    expect(page.get_by_role("group", name="A end").get_by_label("Outer VLAN")).to_have_value("100")
    expect(page.get_by_label("Bandwidth", exact=True)).to_have_value("250")
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    assert alice_browser.complaints == []


def test_back_from_the_ordered_line_keeps_the_form(isp: Isp, alice_browser: Reader) -> None:
    page = alice_browser.page
    alice_browser.open("/orders/new/")
    fill_by_keyboard(page, isp)
    page.get_by_role("button", name="Order this line").click()
    page.wait_for_url("**/vlls/*/")
    page.go_back()
    expect(page.get_by_label("Bandwidth", exact=True)).to_have_value("250")
    # The VLAN is taken now, and the form reports this without a click.
    expect(page.get_by_text("Not possible as it is")).to_be_visible()
    assert alice_browser.complaints == []


@pytest.mark.parametrize("scripts", [True, False])
def test_repeated_order_after_back_needs_confirmation(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader], scripts: bool
) -> None:
    person = reader(live_server.url, java_script_enabled=scripts)
    person.be_signed_in("alice")
    page = person.page
    person.open("/orders/new/")
    for side, port in (("a", "rhino:host-cust1"), ("z", "hippo:host-cust1")):
        page.locator(f"#id_{side}_end-port").select_option(str(isp.ports[port].pk))
        page.locator(f"#id_{side}_end-outer_vlan").fill("any")
    page.get_by_label("Bandwidth", exact=True).fill("100")
    page.get_by_role("button", name="Order this line").click()
    page.wait_for_url("**/vlls/*/")
    # Longer ago than the time in which the portal treats a second request as a repetition.
    Vll.objects.update(created_at=clock.now() - timedelta(minutes=5))
    page.go_back()
    expect(page.get_by_label("Bandwidth", exact=True)).to_have_value("100")
    page.get_by_role("button", name="Order this line").click()
    twice = page.get_by_role("button", name="Order a second line")
    expect(twice).to_be_visible()
    expect(
        page.get_by_text(re.compile("The same line was ordered within the last hour")).first
    ).to_be_visible()
    assert Order.objects.count() == 1
    twice.click()
    page.wait_for_url("**/vlls/*/")
    assert Order.objects.count() == 2
    assert person.complaints == []
