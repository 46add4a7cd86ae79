"""What cannot be taken back at once asks before it is done, with and without scripts."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from tests.browser.reader import Reader
from tests.integration.isp import Isp


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_router_is_held_only_after_a_second_word(
    live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader], scripts: bool
) -> None:
    rhino = isp.routers["rhino"]
    person = reader(live_server.url, java_script_enabled=scripts)
    person.be_signed_in("nora")
    person.open(f"/noc/routers/{rhino.pk}/")
    page = person.page
    asked = page.get_by_role("dialog")
    hold = page.get_by_role("button", name="Hold: send nothing")
    hold.click()
    expect(asked).to_contain_text("Hold rhino? Nothing is sent to it until you release it; its orders wait.")
    asked.get_by_role("button", name="Cancel").click()
    expect(asked).to_be_hidden()
    rhino.refresh_from_db()
    assert rhino.held_since is None
    hold.click()
    asked.get_by_role("button", name="Hold: send nothing").click()
    expect(page.get_by_text("Held by the NOC")).to_be_visible()
    rhino.refresh_from_db()
    assert rhino.held_since is not None
