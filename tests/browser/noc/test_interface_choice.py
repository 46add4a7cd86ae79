"""The NOC enters a router and chooses one of its reported interfaces; the other input stays."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from portal.accounts.models import User
from portal.inventory.models import ObservedInterface
from tests.browser.reader import Reader
from tests.integration.isp import GBIT, Isp


def test_the_interfaces_of_a_router_are_listed_and_one_is_chosen(
    live_server: Any, transactional_db: None, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    facts = {"admin_up": True, "link_up": True, "ip_mtu": 9000, "speed_bps": 25 * GBIT}
    ObservedInterface.objects.create(router=isp.routers["rhino"], name="GigabitEthernet10", **facts)
    person = reader(live_server.url)
    person.be_signed_in("nora")
    person.open("/noc/ports/add/?customer=Alpine+Dairy")
    page = person.page
    page.get_by_label("Description").fill("to Bern")
    page.get_by_label("Router").fill("rhino")
    page.get_by_label("Router").press("Tab")
    page.get_by_role("button", name="Use GigabitEthernet10").click()
    expect(page.get_by_label("Interface", exact=True)).to_have_value("GigabitEthernet10")
    expect(page.get_by_label("Speed (Mbit/s)")).to_have_value("25000")
    expect(page.get_by_label("Description")).to_have_value("to Bern")
    # Enter saves, although the buttons of the list come before the button of the form.
    page.get_by_label("Description").press("Enter")
    page.get_by_role("heading", name="Alpine Dairy").wait_for()
    expect(page.get_by_role("link", name="Zürich – rhino:GigabitEthernet10")).to_be_visible()
    assert person.complaints == []
