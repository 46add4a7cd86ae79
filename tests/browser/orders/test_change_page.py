"""The preview of a line's change follows the input; without scripts a button shows the preview."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.vll.models import Order, Vll
from tests.browser.reader import Reader
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate


@pytest.fixture
def vll(transactional_db: None, isp: Isp, alice: User) -> Vll:
    made = order(isp, alice, description="Milk run").vll
    activate(made)
    return made


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_preview_of_a_change_follows_the_input(
    live_server: Any, vll: Vll, reader: Callable[..., Reader], scheme: str
) -> None:
    alice = reader(live_server.url, color_scheme=scheme)
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{vll.pk}/change/")
    page = alice.page
    preview = page.locator("#feasibility")
    expect(preview).to_contain_text("No change yet")
    page.get_by_label("Bandwidth", exact=True).fill("4")
    expect(preview).to_contain_text("This change is possible.")
    expect(preview.get_by_role("row", name="Bandwidth (CIR)")).to_contain_text("4 Gbit/s")
    expect(preview.locator(".ll-drawing text", has_text="MTU 9000")).to_be_visible()
    assert alice.accessibility_violations() == []
    page.get_by_label("Largest packet (MTU)").fill("9100")
    expect(preview).to_contain_text("Not possible as it is")
    assert alice.accessibility_violations() == []
    page.get_by_label("Largest packet (MTU)").fill("1500")
    expect(preview).to_contain_text("This change is possible.")
    assert not Order.objects.filter(action="modify").exists()
    page.get_by_role("button", name="Order this change").click()
    expect(page.get_by_text("The change is ordered.")).to_be_visible()
    vll.refresh_from_db()
    assert vll.cir_bps == 4 * GBIT
    assert alice.complaints == []


def test_without_scripts_a_button_shows_the_preview(
    live_server: Any, vll: Vll, reader: Callable[..., Reader]
) -> None:
    alice = reader(live_server.url, java_script_enabled=False)
    alice.be_signed_in("alice")
    alice.open(f"/vlls/{vll.pk}/change/")
    page = alice.page
    page.get_by_label("Bandwidth", exact=True).fill("4")
    page.get_by_role("button", name="Check first").click()
    expect(page.get_by_text("This change is possible.")).to_be_visible()
    expect(page.get_by_label("Bandwidth", exact=True)).to_have_value("4")
    assert not Order.objects.filter(action="modify").exists()
    page.get_by_role("button", name="Order this change").click()
    expect(page.get_by_text("The change is ordered.")).to_be_visible()
