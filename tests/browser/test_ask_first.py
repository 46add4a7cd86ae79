"""Actions that cannot be undone at once need a confirmation, with and without scripts."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from tests.browser.reader import Reader
from tests.integration.isp import Isp


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_router_is_frozen_only_after_a_confirmation(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader], scripts: bool
) -> None:
    rhino = isp.routers["rhino"]
    person = reader(live_server.url, java_script_enabled=scripts)
    person.be_signed_in("nora")
    person.open(f"/noc/routers/{rhino.pk}/")
    page = person.page
    dialog = page.get_by_role("dialog")
    lock = page.get_by_role("button", name="Lock: send nothing")
    lock.click()
    expect(dialog).to_contain_text("Lock rhino? Nothing is sent to it until you release it; its orders wait.")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    rhino.refresh_from_db()
    assert rhino.locked_since is None
    lock.click()
    dialog.get_by_role("button", name="Lock: send nothing").click()
    expect(page.get_by_text("Locked by the NOC")).to_be_visible()
    rhino.refresh_from_db()
    assert rhino.locked_since is not None
