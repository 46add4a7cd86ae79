"""The pages of signing in, teams and tokens are accessible, fit their window and work in a browser."""

from collections.abc import Callable
from typing import Any

import pytest

from portal.accounts.invitations import invitation_path, invite
from portal.accounts.models import Customer, User
from portal.accounts.own_account import email_change_path
from portal.core import clock
from tests.browser.reader import Reader
from tests.integration.accounts.codes import code_of, with_totp
from tests.integration.accounts.test_sign_in import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)
APPEARANCES = [("light", 1280), ("dark", 320)]


def faults(person: Reader) -> list[str]:
    """Return the faults of the open page."""
    found = person.accessibility_violations() + person.complaints
    if person.overflow() > 0:
        found.append(f"{person.overflow()} px too wide")
    person.complaints.clear()
    return found


@pytest.mark.parametrize(("scheme", "width"), APPEARANCES)
def test_the_pages_of_an_account(
    live_server: Any,
    ada: User,
    bob: User,
    dairy: Customer,
    bakery: Customer,
    reader: Callable[..., Reader],
    scheme: str,
    width: int,
) -> None:
    now = clock.now()
    invited = invite(by=ada, customer=dairy, email="dora@dairy.example", role="viewer", now=now)
    User.objects.create_user("eve", email="eve@x.example", is_active=False, closed_with=bakery)
    invited_back = invite(by=ada, customer=dairy, email="eve@x.example", role="viewer", now=now)
    person = reader(live_server.url, color_scheme=scheme, viewport={"width": width, "height": 800})
    found = {}
    for address in ("/login/", "/password/forgotten/", "/password/forgotten/sent/", "/login/inactive/"):
        person.open(address)
        found[address] = faults(person)
    person.open(invitation_path(invited))
    found["invitation"] = faults(person)
    person.open(invitation_path(invited_back))
    found["invitation of somebody whose account was closed"] = faults(person)
    person.open("/invitations/7:forged/")
    found["forged invitation"] = faults(person)
    person.sign_in("ada", PASSWORD)
    for address in (f"/team/{dairy.pk}/", "/account/security/", "/account/password/", "/account/tokens/"):
        person.open(address)
        found[address] = faults(person)
    page = person.page
    page.get_by_label("What is it for?").fill("laptop")
    page.get_by_role("button", name="Create the token").click()
    page.get_by_label("Password").fill(PASSWORD)
    found["password again"] = faults(person)
    page.get_by_role("button", name="Continue").click()
    page.locator("#secret").wait_for()
    found["new token"] = faults(person)
    person.open("/account/email/")
    page.get_by_label("New e-mail address").fill("ada@alpine.example")
    found["another address"] = faults(person)
    page.get_by_role("button", name="Send the link").click()
    page.get_by_role("heading", name="Check your mail").wait_for()
    found["link to another address"] = faults(person)
    person.open(email_change_path(User.objects.get(username="ada"), to="ada@alpine.example"))
    found["confirmation of another address"] = faults(person)
    page.get_by_role("button", name="Use this address").click()
    page.get_by_text("Your e-mail address is ada@alpine.example now.").wait_for()
    found["account"] = faults(person)
    person.open("/account/email/confirm/nothing/")
    found["link that is over"] = faults(person)
    assert {address: wrong for address, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(("scheme", "width"), APPEARANCES)
def test_ada_sets_up_her_second_factor_and_signs_in_with_it(
    live_server: Any, ada: User, reader: Callable[..., Reader], scheme: str, width: int
) -> None:
    appearance: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    found = {}
    person = reader(live_server.url, **appearance)
    page = person.page
    person.sign_in("ada", PASSWORD)
    person.open("/account/security/totp/")
    found["again"] = faults(person)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    secret = page.locator("code").inner_text()
    found["set up"] = faults(person)
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.get_by_role("button", name="Activate").click()
    page.get_by_role("heading", name="Recovery codes").wait_for()
    found["recovery codes"] = faults(person)
    recovery = page.locator(".ll-codes code").first.inner_text()

    later = reader(live_server.url, **appearance)
    later.open("/login/")
    later.page.get_by_label("User name").fill("ada")
    later.page.get_by_label("Password").fill(PASSWORD)
    later.page.get_by_role("button", name="Sign in").click()
    later.page.get_by_role("heading", name="Second factor").wait_for()
    found["second factor"] = faults(later)
    later.page.get_by_label("Code").fill(recovery)
    later.page.get_by_role("button", name="Sign in", exact=True).click()
    later.page.get_by_role("heading", name="Virtual leased lines").wait_for()
    assert {address: wrong for address, wrong in found.items() if wrong} == {}


def test_an_account_with_totp_needs_no_javascript(
    live_server: Any, ada: User, reader: Callable[..., Reader]
) -> None:
    secret = with_totp(ada)
    person = reader(live_server.url, java_script_enabled=False)
    person.open("/login/")
    person.page.get_by_label("User name").fill("ada")
    person.page.get_by_label("Password").fill(PASSWORD)
    person.page.get_by_role("button", name="Sign in").click()
    person.page.get_by_label("Code").fill(code_of(secret))
    person.page.get_by_role("button", name="Sign in", exact=True).click()
    person.page.get_by_role("heading", name="Virtual leased lines").wait_for()
