"""The pages about the API in a browser: languages, copying, old links, search, trying an operation."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Request, expect

from portal.accounts.models import ApiToken, User
from portal.accounts.tokens import token_create
from portal.core import clock
from portal.vll.models import Reservation
from tests.browser.reader import Reader
from tests.integration.isp import Isp

RESERVATIONS = "/api/docs/holds/"


@pytest.fixture
def alice_reader(live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]) -> Reader:
    person = reader(live_server.url)
    person.be_signed_in("alice")
    person.open(RESERVATIONS)
    return person


def trial(person: Reader, operation: str) -> Locator:
    """Return the opened form below an operation."""
    section = person.page.locator(f"#{operation}")
    section.locator("summary", has_text="Try it").click()
    return section.locator("form")


def result(form: Locator) -> Locator:
    form.locator("[data-status]").wait_for()
    return form.locator("[data-result]")


def a_token(user: User, scope: str) -> str:
    return token_create(user=user, name="tried", scopes=[scope], now=clock.now())[1]


def test_a_chosen_language_is_shown_everywhere(
    live_server: Any, transactional_db: None, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.open(RESERVATIONS)
    example = person.page.locator("#holds_create .ll-examples")
    expect(example.locator('[data-language="curl"]')).to_be_visible()
    example.get_by_text("Python", exact=True).click()
    expect(example.locator('[data-language="python"]')).to_be_visible()
    expect(example.locator('[data-language="curl"]')).to_be_hidden()
    expect(person.page.locator('#holds_list [data-language="python"]')).to_be_visible()
    person.open("/api/docs/orders/")
    expect(person.page.locator('#orders_list [data-language="python"]')).to_be_visible()
    # By keyboard the choices are one group.
    person.page.locator('#orders_list .ll-examples input[value="python"]').focus()
    person.page.keyboard.press("ArrowRight")
    expect(person.page.locator('#orders_list [data-language="httpie"]')).to_be_visible()
    assert person.complaints == []


def test_a_language_can_be_chosen_without_scripts(
    live_server: Any, transactional_db: None, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url, java_script_enabled=False)
    person.open(RESERVATIONS)
    example = person.page.locator("#holds_create .ll-examples")
    example.get_by_text("HTTPie", exact=True).click()
    expect(example.locator('[data-language="httpie"]')).to_be_visible()
    expect(example.locator('[data-language="curl"]')).to_be_hidden()
    expect(example.get_by_role("button", name="Copy")).to_be_hidden()


def test_the_shown_example_is_copied(
    live_server: Any, transactional_db: None, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url, permissions=["clipboard-read", "clipboard-write"])
    person.open(RESERVATIONS)
    example = person.page.locator("#holds_create .ll-examples")
    example.get_by_text("Python", exact=True).click()
    example.get_by_role("button", name="Copy").click()
    expect(example.get_by_role("button", name="Copied")).to_be_visible()
    copied = person.page.evaluate("navigator.clipboard.readText()")
    assert copied == example.locator('[data-language="python"]').text_content()


def test_a_link_to_the_former_single_page_leads_to_the_new_page(
    live_server: Any, transactional_db: None, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.open("/api/docs/#holds_renew_create")
    person.page.wait_for_url("**/api/docs/holds/#holds_renew_create")
    expect(person.page.get_by_role("heading", name="Reservations", exact=True)).to_be_visible()


def test_the_search_finds_operations_while_the_reader_types(
    live_server: Any, transactional_db: None, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.open("/api/docs/")
    person.page.get_by_label("Search the operations").fill("renew")
    expect(person.page.locator("#operations li")).to_have_count(1)
    assert person.page.url.endswith("/api/docs/?q=renew")
    assert person.complaints == []


def test_an_operation_is_tried_as_the_signed_in_user(alice_reader: Reader) -> None:
    form = trial(alice_reader, "holds_list")
    form.get_by_label("limit").fill("0")
    form.get_by_role("button", name="Send").click()
    answer = result(form)
    expect(answer).to_contain_text("422 Unprocessable Entity")
    expect(answer).to_contain_text("from 1 to 200")
    form.get_by_label("limit").fill("5")
    form.get_by_label("limit").press("Enter")
    expect(answer).to_contain_text("200 OK")
    expect(answer).to_contain_text("X-Request-Id")
    expect(answer.get_by_label("Body of the answer")).to_have_text('{\n  "results": [],\n  "next": null\n}')
    assert alice_reader.accessibility_violations() == []
    assert alice_reader.complaints == []


def test_a_change_is_sent_only_after_a_confirmation(alice_reader: Reader, isp: Isp) -> None:
    form = trial(alice_reader, "holds_create")
    ports = [str(isp.ports[f"{name}:host-cust1"].pk) for name in ("rhino", "hippo")]
    body = form.get_by_label("Body")
    written = (
        body.input_value()
        .replace('"port": 12', f'"port": {ports[0]}')
        .replace('"port": 34', f'"port": {ports[1]}')
    )
    body.fill(written)
    dialog = alice_reader.page.get_by_role("dialog", name="Send this request?")
    form.get_by_role("button", name="Send").press("Enter")
    expect(dialog).to_contain_text("POST /api/v1/holds")
    assert alice_reader.accessibility_violations() == []
    alice_reader.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert not Reservation.objects.exists()
    form.get_by_role("button", name="Send").click()
    dialog.get_by_role("button", name="Do not send").click()
    expect(dialog).to_be_hidden()
    assert not Reservation.objects.exists()
    form.get_by_role("button", name="Send").click()
    dialog.get_by_role("button", name="Send it").click()
    expect(result(form)).to_contain_text("201 Created")
    assert Reservation.objects.get().reserved_by == "alice"
    assert alice_reader.complaints == []


def test_a_token_is_sent_only_to_the_api_and_only_as_authorization(
    alice_reader: Reader, alice: User, live_server: Any
) -> None:
    token = a_token(alice, "read")
    sent: list[Request] = []
    alice_reader.page.on("request", lambda request: sent.append(request))
    settings = alice_reader.page.locator("#try-as")
    settings.get_by_label("An API token").check()
    settings.get_by_label("API token", exact=True).fill(token)
    form = trial(alice_reader, "holds_list")
    form.get_by_role("button", name="Send").click()
    expect(result(form)).to_contain_text("200 OK")
    # A token with the scope read allows only that, even if the signed-in user may do more.
    form = trial(alice_reader, "holds_create")
    form.get_by_role("button", name="Send").click()
    alice_reader.page.get_by_role("dialog").get_by_role("button", name="Send it").click()
    expect(result(form)).to_contain_text("403 Forbidden")
    alice_reader.open("/api/docs/orders/")
    expect(settings.get_by_label("API token", exact=True)).to_have_value(token)

    with_token = [each for each in sent if token in each.all_headers().get("authorization", "")]
    assert [each.url for each in with_token] == [f"{live_server.url}/api/v1/holds"] * 2
    for each in with_token:
        assert "cookie" not in each.all_headers()
    for each in sent:
        assert token not in each.url + (each.post_data or "")
    assert ApiToken.objects.get().last_used_at is not None


def test_a_token_is_forgotten_by_a_button_and_at_a_change_of_user(alice_reader: Reader, ada: User) -> None:
    settings = alice_reader.page.locator("#try-as")
    field = settings.get_by_label("API token", exact=True)
    settings.get_by_label("An API token").check()
    field.fill("ll_made_up")
    settings.get_by_role("button", name="Forget it").click()
    expect(field).to_have_value("")
    form = trial(alice_reader, "holds_list")
    form.get_by_role("button", name="Send").click()
    expect(form).to_contain_text("Paste an API token above, or send as yourself.")

    field.fill("ll_made_up")
    alice_reader.page.context.clear_cookies()
    alice_reader.be_signed_in("ada")
    alice_reader.open(RESERVATIONS)
    expect(settings.get_by_label("ada, with your session on this portal")).to_be_checked()
    assert field.input_value() == ""


def test_nothing_can_be_sent_without_scripts(
    live_server: Any, alice: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url, java_script_enabled=False)
    person.be_signed_in("alice")
    person.open(RESERVATIONS)
    expect(
        person.page.get_by_text("This needs scripts. The examples do the same from a shell.")
    ).to_be_visible()
    form = trial(person, "holds_list")
    expect(form.get_by_role("button", name="Send")).to_be_disabled()
