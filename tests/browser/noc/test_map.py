"""The map in a browser: clicks choose a router, and changes appear automatically without moving the map."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import ObservedLoad
from tests.browser.reader import Reader
from tests.integration.isp import GBIT, Isp


def test_a_router_is_chosen_on_the_drawing_and_deselected(
    live_server: Any, transactional_db: None, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url, viewport={"width": 1280, "height": 800})
    person.be_signed_in("nora")
    person.open("/noc/map/?q=rhino")
    page = person.page
    page.locator(".ll-draw-if-wide .ll-draw-name", has_text="hippo").click()
    expect(page.get_by_role("heading", name="If hippo fails")).to_be_visible()
    assert page.url.endswith(f"/noc/map/?q=rhino&router={isp.routers['hippo'].pk}#map")
    page.get_by_role("link", name="Clear the selection").click()
    expect(page.get_by_role("heading", name="If hippo fails")).to_have_count(0)
    assert page.url.endswith("/noc/map/?q=rhino")
    assert person.complaints == []


def test_the_load_of_a_link_appears_automatically_and_keeps_the_view(
    live_server: Any, transactional_db: None, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    link = isp.links["rhino-hippo"]
    person = reader(live_server.url, viewport={"width": 800, "height": 800})
    page = person.page
    page.clock.install()
    person.be_signed_in("nora")
    person.open("/noc/map/")
    drawing = page.locator(".ll-drawing")
    drawing.evaluate("element => { element.scrollLeft = 40 }")
    by_keyboard = page.locator(f"#fails-link-{link.pk}")
    by_keyboard.focus()
    ObservedLoad.objects.create(
        link=link, side="a", at=clock.now(), rx_bps=1, tx_bps=3 * GBIT, speed_bps=10 * GBIT
    )
    page.clock.fast_forward("00:16")
    expect(drawing.locator(".ll-draw-if-wide").get_by_text("30 %")).to_be_visible()
    expect(page.get_by_text("30 % of 10 Gbit/s")).to_be_visible()
    expect(by_keyboard).to_be_focused()
    assert drawing.evaluate("element => element.scrollLeft") == 40
    assert person.complaints == []
