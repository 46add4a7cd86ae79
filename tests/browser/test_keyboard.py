"""Navigation by keyboard: letters that open pages, their list, and the command palette."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from portal.accounts.models import User
from portal.vll.models import Vll
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def line(isp: Isp, alice: User, nora: User) -> Vll:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    return vll


@pytest.fixture
def nora_reader(live_server: Any, line: Vll, reader: Callable[..., Reader]) -> Reader:
    person = reader(live_server.url)
    person.be_signed_in("nora")
    person.open("/")
    return person


@pytest.fixture
def alice_reader(live_server: Any, line: Vll, reader: Callable[..., Reader]) -> Reader:
    person = reader(live_server.url)
    person.be_signed_in("alice")
    person.open("/")
    return person


def palette(page: Page) -> Any:
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Type a page, a name or what you want to do")
    expect(field).to_be_focused()
    return field


def chosen(page: Page) -> Any:
    """Return the option that Enter opens."""
    return page.get_by_role("option", selected=True)


class TestLetters:
    def test_g_and_a_letter_open_a_page(self, nora_reader: Reader) -> None:
        page = nora_reader.page
        for letter, address in (("a", "/noc/"), ("m", "/noc/map/"), ("c", "/noc/customers/"), ("l", "/")):
            page.keyboard.press("g")
            page.keyboard.press(letter)
            page.wait_for_url(f"**{address}")
        assert nora_reader.complaints == []

    def test_a_customer_opens_only_his_own_pages(self, alice_reader: Reader) -> None:
        page = alice_reader.page
        page.keyboard.press("g")
        page.keyboard.press("a")
        page.keyboard.press("g")
        page.keyboard.press("p")
        page.wait_for_url("**/ports/")

    def test_shortcuts_do_nothing_while_somebody_types(self, nora_reader: Reader) -> None:
        page = nora_reader.page
        page.keyboard.press("/")
        page.keyboard.type("g m?/")
        expect(page.get_by_label("Search for a name")).to_have_value("g m?/")
        assert page.get_by_role("dialog").count() == 0
        assert page.url.endswith("/")

    @pytest.mark.parametrize("keys", [("Control+g", "m"), ("Alt+g", "m"), ("g", "Alt+m"), ("g", "x", "m")])
    def test_other_keys_between_or_with_the_letters_open_nothing(
        self, nora_reader: Reader, keys: tuple[str, ...]
    ) -> None:
        page, before = nora_reader.page, nora_reader.page.url
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_timeout(300)
        assert page.url == before

    def test_a_question_mark_lists_the_shortcuts_in_a_dialog_that_disables_them(
        self, nora_reader: Reader
    ) -> None:
        page = nora_reader.page
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(dialog.get_by_text("Go to Alarms")).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("m")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.keyboard.press("?")
        expect(dialog).to_be_visible()
        assert page.locator("#shortcuts").count() == 1
        assert nora_reader.complaints == []

    def test_the_account_menu_leads_to_the_shortcuts_also_without_scripts(
        self, live_server: Any, line: Vll, reader: Callable[..., Reader]
    ) -> None:
        person = reader(live_server.url, java_script_enabled=False)
        person.be_signed_in("nora")
        person.open("/")
        person.page.get_by_role("button", name="Account of nora").press("Enter")
        person.page.get_by_role("link", name="Keyboard shortcuts").click()
        expect(person.page.get_by_text("Go to Alarms")).to_be_visible()


class TestPalette:
    def test_it_opens_from_a_field_and_returns_the_focus(self, nora_reader: Reader) -> None:
        page = nora_reader.page
        search = page.get_by_label("Search for a name")
        search.focus()
        palette(page)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
        expect(search).to_be_focused()

    def test_arrows_choose_and_enter_opens(self, nora_reader: Reader) -> None:
        page = nora_reader.page
        field = palette(page)
        field.fill("pool")
        expect(chosen(page)).to_have_text("Pools")
        field.fill("rout")
        expect(page.get_by_role("option", name="Router status")).to_be_visible()
        first = chosen(page).inner_text()
        page.keyboard.press("ArrowDown")
        assert chosen(page).inner_text() != first
        page.keyboard.press("ArrowUp")
        assert chosen(page).inner_text() == first
        page.keyboard.press("ArrowUp")
        expect(chosen(page)).to_contain_text("Search for “rout”")
        expect(field).to_have_attribute("aria-activedescendant", str(chosen(page).get_attribute("id")))
        page.keyboard.press("Enter")
        page.wait_for_url("**/search/?q=rout")
        assert nora_reader.complaints == []

    def test_enter_after_fast_typing_opens_the_typed_page(self, nora_reader: Reader) -> None:
        page = nora_reader.page
        palette(page)
        page.keyboard.type("audit")
        page.keyboard.press("Enter")
        page.wait_for_url("**/noc/audit/")

    def test_it_leads_from_a_line_to_the_confirmation_page(self, alice_reader: Reader, line: Vll) -> None:
        page = alice_reader.page
        palette(page)
        page.keyboard.type("suspend milk")
        expect(chosen(page)).to_contain_text("Suspend Milk run")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/vlls/{line.pk}/suspend/")
        assert Vll.objects.get(pk=line.pk).lifecycle == "active"

    def test_the_number_of_results_is_announced(self, alice_reader: Reader) -> None:
        page = alice_reader.page
        palette(page).fill("milk")
        expect(page.locator("#palette-said")).to_have_text("2 results")

    def test_it_switches_the_colours_and_signs_out(self, alice_reader: Reader) -> None:
        page = alice_reader.page
        shown = page.locator("html")
        before = shown.get_attribute("data-bs-theme")
        palette(page).fill("dark")
        expect(chosen(page)).to_contain_text("Switch between light and dark")
        page.keyboard.press("Enter")
        expect(shown).not_to_have_attribute("data-bs-theme", str(before))
        expect(page.get_by_role("dialog")).to_be_hidden()
        palette(page).fill("sign out")
        expect(chosen(page)).to_have_text("Sign out")
        page.keyboard.press("Enter")
        page.wait_for_url("**/login/**")
        assert alice_reader.complaints == []

    def test_a_reader_without_a_session_is_led_to_the_sign_in_page(self, alice_reader: Reader) -> None:
        alice_reader.page.context.clear_cookies()
        alice_reader.page.keyboard.press("Control+k")
        note = alice_reader.page.get_by_role("alert").filter(has_text="You are signed out")
        note.get_by_role("link", name="Sign in again").click()
        alice_reader.page.wait_for_url("**/login/**")

    @pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 320)])
    def test_the_dialogs_are_accessible_and_fit(
        self, live_server: Any, line: Vll, reader: Callable[..., Reader], scheme: str, width: int
    ) -> None:
        person = reader(live_server.url, color_scheme=scheme, viewport={"width": width, "height": 800})
        person.be_signed_in("nora")
        person.open("/")
        page = person.page
        palette(page).fill("milk")
        expect(chosen(page)).to_be_visible()
        assert person.accessibility_violations() == []
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
        assert person.accessibility_violations() == []
        assert person.overflow() <= 0
        assert person.complaints == []
