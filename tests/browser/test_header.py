"""The header on a phone: one row and the search, menus that open by keyboard and without scripts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from portal.accounts.models import Customer, User
from tests.browser.reader import Reader, german
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db(transaction=True)
WIDTHS = [320, 360, 414]
PROVIDER = "Transcontinental Fibre and Leased Lines Cooperative Society"


@pytest.fixture
def somebody_waits(isp: Isp, alice: User, settings: Any) -> None:
    """Make the NOC's navigation and the provider's name as long as possible."""
    settings.LONGLINE_PROVIDER = replace(settings.LONGLINE_PROVIDER, name=PROVIDER)
    Customer.objects.update(approve_up_to_bps=0)
    alice.refresh_from_db()
    order(isp, alice, cir_bps=GBIT)


def bottom(part: Locator) -> float:
    box = part.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("who", ["alice", "nora"])
def test_on_a_phone_the_header_is_one_row_and_the_search(
    live_server: Any, somebody_waits: None, nora: User, reader: Callable[..., Reader], who: str, width: int
) -> None:
    User.objects.filter(username=who).update(first_name="Wilhelmina", last_name="Featherstonehaugh")
    person = reader(live_server.url, viewport={"width": width, "height": 800})
    person.be_signed_in(who, language="de")
    person.open("/")
    header = person.page.get_by_role("banner")
    search = header.get_by_role("search")
    for part in (
        header.get_by_role("link", name=PROVIDER),
        header.get_by_role("button", name=german("Menu")),
        header.get_by_role("button", name=german("Switch between light and dark")),
        header.get_by_role("button", name=german("Account of")),
    ):
        expect(part).to_be_in_viewport()
        assert bottom(part) <= (search.bounding_box() or {"y": 0})["y"] + 1
    assert (header.bounding_box() or {"height": 999})["height"] < 110
    assert person.overflow() <= 0


@pytest.mark.parametrize("scripts", [True, False])
def test_the_menus_open_by_keyboard_with_and_without_scripts(
    live_server: Any, somebody_waits: None, nora: User, reader: Callable[..., Reader], scripts: bool
) -> None:
    nora_reader = reader(live_server.url, viewport={"width": 360, "height": 800}, java_script_enabled=scripts)
    nora_reader.be_signed_in("nora")
    nora_reader.open("/")
    page = nora_reader.page
    menu, pages = (
        page.get_by_role("button", name="Menu 1 waiting"),
        page.get_by_role("navigation", name="Main"),
    )
    expect(pages).to_be_hidden()
    menu.press("Enter")
    expect(pages).to_be_visible()
    page.keyboard.press("Tab")
    expect(pages.get_by_role("link", name="Alarms")).to_be_focused()
    page.keyboard.press("Escape")
    expect(pages).to_be_hidden()
    menu.press("Enter")
    pages.get_by_role("link", name="Orders pending approval 1 waiting").press("Enter")
    expect(page.get_by_role("heading", name="Orders pending approval")).to_be_visible()
    account = page.get_by_role("button", name="Account of nora")
    account.press("Enter")
    page.get_by_role("navigation", name="Account").get_by_role("link", name="API tokens").press("Enter")
    expect(page.get_by_role("heading", name="API tokens")).to_be_visible()
    account.press("Enter")
    page.get_by_role("button", name="Sign out").press("Enter")
    page.wait_for_url("**/login/**")
    assert nora_reader.complaints == []


@pytest.mark.parametrize("scripts", [True, False])
def test_on_a_wide_screen_each_group_opens_below_its_button(
    live_server: Any, somebody_waits: None, nora: User, reader: Callable[..., Reader], scripts: bool
) -> None:
    person = reader(live_server.url, viewport={"width": 1280, "height": 800}, java_script_enabled=scripts)
    person.be_signed_in("nora")
    person.open("/")
    page = person.page
    main = page.get_by_role("navigation", name="Main")
    for group, link in (("Operate 1 waiting", "Map"), ("Inventory", "Sites"), ("Customers", "NOC staff")):
        button = main.get_by_role("button", name=group)
        button.press("Enter")
        entry = main.get_by_role("link", name=link)
        expect(entry).to_be_in_viewport()
        assert bottom(button) <= (entry.bounding_box() or {"y": 0})["y"]
        assert abs((button.bounding_box() or {"x": 0})["x"] - (entry.bounding_box() or {"x": 999})["x"]) < 40
        page.keyboard.press("Escape")
        expect(entry).to_be_hidden()
    assert person.complaints == []


@pytest.mark.parametrize("width", WIDTHS)
def test_on_a_phone_the_row_of_a_group_scrolls_to_the_current_page(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader], width: int
) -> None:
    person = reader(live_server.url, viewport={"width": width, "height": 800})
    person.be_signed_in("nora", language="de")
    for address, group, link in (
        ("/routers/", "Operate", "Router status"),
        ("/noc/sites/", "Inventory", "Sites"),
        ("/noc/audit/", "Customers", "Audit"),
    ):
        person.open(address)
        row = person.page.get_by_role("navigation", name=german(group), exact=True)
        expect(row.get_by_role("link", name=german(link))).to_be_in_viewport(ratio=1)
        assert person.overflow() <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_an_open_menu_is_accessible(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader], scheme: str, width: int
) -> None:
    person = reader(live_server.url, color_scheme=scheme, viewport={"width": width, "height": 800})
    person.be_signed_in("nora")
    person.open("/")
    page = person.page
    page.get_by_role("button", name="Menu" if width == 320 else "Operate").click()
    expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Map")).to_be_visible()
    assert person.accessibility_violations() == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Account of").click()
    expect(page.get_by_role("navigation", name="Account")).to_be_in_viewport()
    assert person.accessibility_violations() == []
    assert person.overflow() <= 0
    assert person.complaints == []
