"""The session ends while a page is open: the page reports it, keeps the input, and leads back."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import Page, expect

from portal.accounts.models import User
from portal.vll.models import Vll
from tests.browser.orders.test_order_wizard import fill_by_keyboard
from tests.browser.reader import Reader
from tests.browser.test_live_pages import hide
from tests.integration.isp import Isp
from tests.integration.lines.test_oper_status import observe
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice_reader(live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]) -> Reader:
    person = reader(live_server.url)
    person.be_signed_in("alice")
    return person


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    for side in "az":
        observe(isp, vll, side)
    return vll


def end_sessions() -> None:
    Session.objects.all().delete()


def look_again(page: Page) -> None:
    """Return to the tab, so that its parts are requested."""
    hide(page, True)
    hide(page, False)


def sign_in_at(page: Page, username: str = "alice") -> None:
    """Fill in the open sign-in page."""
    page.get_by_label("User name").fill(username)
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_in_in_another_tab(person: Reader, username: str = "alice") -> None:
    tab = person.page.context.new_page()
    tab.goto(f"{person.url}/")
    tab.locator(".ll-account-button").click()
    tab.locator("#sign-out").click()
    sign_in_at(tab, username)
    tab.get_by_role("heading", name="Virtual leased lines").wait_for()
    tab.close()


def signed_out_note(page: Page) -> Any:
    return page.get_by_role("alert").filter(has_text="You are signed out")


def end_sessions_and_look(page: Page) -> None:
    end_sessions()
    look_again(page)
    expect(signed_out_note(page)).to_be_visible()


def test_an_order_survives_the_end_of_its_session(isp: Isp, alice_reader: Reader) -> None:
    page = alice_reader.page
    alice_reader.open("/orders/new/")
    fill_by_keyboard(page, isp)
    page.get_by_label("Name or reference").fill("Milk run")
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    end_sessions()
    page.get_by_role("button", name="Order this line").click()
    expect(signed_out_note(page)).to_be_visible()
    expect(signed_out_note(page)).to_be_focused()
    expect(page.get_by_label("Password")).to_have_count(0)
    expect(page.get_by_label("Bandwidth", exact=True)).to_have_value("250")
    assert alice_reader.accessibility_violations() == []
    signed_out_note(page).get_by_role("link", name="Sign in again").click()
    sign_in_at(page)
    page.wait_for_url("**/orders/new/")
    expect(page.get_by_role("status").filter(has_text="filled in again")).to_be_visible()
    expect(page.get_by_label("Name or reference")).to_have_value("Milk run")
    expect(page.get_by_role("group", name="A end").get_by_label("Outer VLAN")).to_have_value("100")
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    page.get_by_role("button", name="Order this line").click()
    page.wait_for_url("**/vlls/*/")
    assert Vll.objects.get().cir_bps == 250_000_000
    assert alice_reader.complaints == []


def test_the_preview_says_that_the_session_has_ended_and_shows_no_sign_in_page(
    isp: Isp, alice_reader: Reader
) -> None:
    page = alice_reader.page
    alice_reader.open("/orders/new/")
    fill_by_keyboard(page, isp)
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    end_sessions()
    page.get_by_label("Bandwidth", exact=True).fill("300")
    expect(signed_out_note(page)).to_be_visible()
    expect(page.get_by_label("Password")).to_have_count(0)
    # The note does not interrupt somebody who is typing.
    expect(page.get_by_label("Bandwidth", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Bandwidth", exact=True)).to_have_value("300")
    assert not Vll.objects.exists()


def test_an_order_continues_after_signing_in_in_another_tab(isp: Isp, alice_reader: Reader) -> None:
    page = alice_reader.page
    alice_reader.open("/orders/new/")
    fill_by_keyboard(page, isp)
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    sign_in_in_another_tab(alice_reader)
    page.get_by_role("button", name="Order this line").click()
    expect(page.get_by_role("alert").filter(has_text="You have signed in again")).to_be_visible()
    expect(page.get_by_label("Bandwidth", exact=True)).to_have_value("250")
    page.get_by_role("button", name="Order this line").click()
    page.wait_for_url("**/vlls/*/")
    assert Vll.objects.count() == 1


def test_a_page_of_one_account_orders_nothing_for_another(isp: Isp, nora: User, alice_reader: Reader) -> None:
    page = alice_reader.page
    alice_reader.open("/orders/new/")
    fill_by_keyboard(page, isp)
    expect(page.get_by_text("This line is possible.")).to_be_visible()
    alice_reader.be_signed_in("nora")
    page.get_by_role("button", name="Order this line").click()
    expect(page.get_by_role("alert").filter(has_text="This page was opened as alice")).to_be_visible()
    assert not Vll.objects.exists()


def test_a_line_is_not_shown_as_up_once_the_session_has_ended(vll: Vll, alice_reader: Reader) -> None:
    page = alice_reader.page
    alice_reader.open(f"/vlls/{vll.pk}/")
    health = page.locator("#vll-status .ll-health")
    expect(health).to_contain_text("Up")
    end_sessions_and_look(page)
    expect(health).to_contain_text("Unknown")
    expect(page.get_by_text("Up", exact=True)).to_have_count(0)
    colours = page.locator(".ll-badge").evaluate_all(
        "badges => new Set(badges.map((badge) => getComputedStyle(badge).color)).size"
    )
    assert colours == 1
    # Signing in in another tab shows the state again without a reload.
    alice_reader.be_signed_in("alice")
    look_again(page)
    expect(health).to_contain_text("Up")
    expect(signed_out_note(page)).to_be_hidden()


def test_an_answer_from_before_the_end_of_the_session_does_not_end_the_note(
    vll: Vll, alice_reader: Reader
) -> None:
    page = alice_reader.page
    late = alice_reader.intercept("**/throughput?*", lambda: alice_reader.open(f"/vlls/{vll.pk}/"))
    answer = late.fetch()
    assert answer.ok
    end_sessions_and_look(page)
    # No further request, because its answer would show the note again.
    page.route("**/status/**", lambda route: None)
    with page.expect_response("**/throughput?*"):
        late.fulfill(response=answer)
    page.wait_for_timeout(100)
    expect(signed_out_note(page)).to_be_visible()
    expect(page.locator("#vll-status .ll-health")).to_contain_text("Unknown")


def test_a_part_from_before_the_end_of_the_session_is_not_shown_as_current(
    vll: Vll, alice_reader: Reader
) -> None:
    page = alice_reader.page
    alice_reader.open(f"/vlls/{vll.pk}/")
    expect(page.locator("#vll-status .ll-health")).to_contain_text("Up")
    Vll.objects.filter(pk=vll.pk).update(description="Cheese run")
    late = alice_reader.intercept(
        "**/status/**",
        lambda: page.evaluate("document.querySelector('#vll-status').dispatchEvent(new CustomEvent('live'))"),
    )
    answer = late.fetch()
    assert answer.status == 200
    end_sessions()
    page.evaluate("() => { longline.ask(location.pathname + 'months/') }")
    expect(signed_out_note(page)).to_be_visible()
    # The new part requests the diagnosis, whose answer would show the note again.
    page.route("**/diagnosis/**", lambda route: None)
    late.fulfill(response=answer)
    expect(page.locator("#vll-status")).to_contain_text("Cheese run")
    expect(signed_out_note(page)).to_be_visible()
    expect(page.locator("#vll-status .ll-health")).to_contain_text("Unknown")


def test_a_refusal_from_before_the_new_session_does_not_show_the_note(vll: Vll, alice_reader: Reader) -> None:
    page = alice_reader.page
    alice_reader.open(f"/vlls/{vll.pk}/")
    end_sessions()
    late = alice_reader.intercept(
        "**/months/", lambda: page.evaluate("() => { longline.ask(location.pathname + 'months/') }")
    )
    refusal = late.fetch()
    assert refusal.status == 401
    look_again(page)
    expect(signed_out_note(page)).to_be_visible()
    alice_reader.be_signed_in("alice")
    look_again(page)
    expect(signed_out_note(page)).to_be_hidden()
    with page.expect_response("**/months/"):
        late.fulfill(response=refusal)
    page.wait_for_timeout(100)
    expect(signed_out_note(page)).to_be_hidden()
    expect(page.locator("#vll-status .ll-health")).to_contain_text("Up")


def test_a_button_pressed_in_a_new_session_shows_the_states_again(vll: Vll, alice_reader: Reader) -> None:
    page = alice_reader.page
    alice_reader.open(f"/vlls/{vll.pk}/")
    end_sessions_and_look(page)
    alice_reader.be_signed_in("alice")
    page.evaluate(
        "() => htmx.ajax('POST', location.pathname, { source: document.body,"
        " event: new Event('submit'), swap: 'none' })"
    )
    expect(page.get_by_role("alert").filter(has_text="You have signed in again")).to_be_visible()
    expect(page.locator("#vll-status .ll-health")).to_contain_text("Up")


def test_the_palette_of_a_signed_out_reader_shows_the_note(alice_reader: Reader) -> None:
    page = alice_reader.page
    alice_reader.open("/")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_visible()
    end_sessions()
    page.keyboard.type("order")
    expect(signed_out_note(page)).to_be_visible()
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_plain_form_is_filled_in_again_after_signing_in(
    isp: Isp, live_server: Any, nora: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.be_signed_in("nora")
    page = person.page
    person.open("/noc/sites/add/")
    page.get_by_label("Name", exact=True).fill("Cellar")
    end_sessions()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").filter(has_text="What you have entered is kept")).to_be_visible()
    # The test signs in directly, so it needs no second factor.
    person.be_signed_in("nora")
    person.open("/noc/sites/add/")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Cellar")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Cellar").first).to_be_visible()
    # The form was sent, so its input is not restored.
    person.open("/noc/sites/add/")
    expect(page.get_by_label("Name", exact=True)).to_have_value("")


def test_a_form_with_an_outdated_token_leads_back_to_its_input(
    isp: Isp, live_server: Any, nora: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.be_signed_in("nora")
    page = person.page
    person.open("/noc/sites/add/")
    page.get_by_label("Name", exact=True).fill("Cellar")
    page.context.clear_cookies(name="csrftoken")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="The form has expired")).to_be_visible()
    page.get_by_role("link", name="Back to the form").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Cellar")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Cellar").first).to_be_visible()


def test_the_input_of_one_account_is_never_shown_to_another(
    isp: Isp, live_server: Any, nora: User, nina: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.be_signed_in("nora")
    page = person.page
    person.open("/noc/sites/add/")
    page.get_by_label("Name", exact=True).fill("Cellar")
    end_sessions()
    page.get_by_role("button", name="Save").click()
    page.get_by_label("User name").wait_for()
    person.be_signed_in("nina")
    person.open("/noc/sites/add/")
    expect(page.get_by_label("Name", exact=True)).to_have_value("")
    person.be_signed_in("nora")
    person.open("/noc/sites/add/")
    expect(page.get_by_label("Name", exact=True)).to_have_value("")
