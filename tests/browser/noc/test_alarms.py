"""The NOC's alarms in a browser: clicks, opened details, and the page for a screen on the wall."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.alarms.models import Alarm, OperatorState
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from portal.inventory.models import Router, RouterSilence
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import forget_requests
from tests.integration.router_answers import activate


@pytest.fixture
def alarms(transactional_db: None, isp: Isp, alice: User, nora: User) -> None:
    """Create an alarm for the silent router rhino, with two lines over it."""
    for vlan in (100, 101):
        ends = {
            "a_end": end(isp, "rhino:host-cust1", outer=vlan),
            "z_end": end(isp, "hippo:host-cust1", outer=vlan),
        }
        activate(order(isp, alice, description=f"line {vlan}", cir_bps=10**6, **ends).vll)
    RouterSilence.objects.create(router=isp.routers["rhino"], since=clock.now() - timedelta(minutes=5))
    # No worker takes the tasks of these lines, which would be another alarm.
    forget_requests()
    alarms_watch(now=clock.now())


def test_a_click_acknowledges_an_alarm_and_opened_details_stay_open(
    live_server: Any, alarms: None, reader: Callable[..., Reader]
) -> None:
    nora = reader(live_server.url)
    nora.be_signed_in("nora")
    nora.open("/noc/")
    page = nora.page
    page.evaluate("window.stillThere = true")
    page.get_by_text("2 lines of Alpine Dairy").click()
    expect(page.get_by_role("link", name="line 101")).to_be_visible()
    page.get_by_role("button", name="Acknowledge rhino is silent").click()
    expect(page.get_by_role("heading", name="Acknowledged (1)")).to_be_visible()
    expect(page.get_by_text("Acknowledged by nora")).to_be_visible()
    expect(page.get_by_role("link", name="line 101")).to_be_visible()
    assert page.evaluate("window.stillThere"), "the page was loaded again"
    assert OperatorState.objects.get().acknowledged_by == "nora"
    Router.objects.filter(name="hippo").update(locked_since=clock.now())
    alarms_watch(now=clock.now())
    link = page.get_by_role("link", name="hippo is locked, frozen or under maintenance", exact=True)
    expect(link).to_be_visible(timeout=15_000)
    expect(page.get_by_role("link", name="line 101")).to_be_visible()
    assert nora.complaints == []


def test_the_list_keeps_refreshing_after_a_form_replaced_it_during_a_refresh(
    live_server: Any, alarms: None, reader: Callable[..., Reader]
) -> None:
    nora = reader(live_server.url)
    nora.be_signed_in("nora")
    nora.stop_polls()
    nora.open("/noc/")
    page = nora.page
    nora.intercept("**/noc/", lambda: page.locator("#alarms").dispatch_event("live"))
    page.get_by_role("button", name="Acknowledge rhino is silent").click()
    expect(page.get_by_role("heading", name="Acknowledged (1)", exact=True)).to_be_visible()
    page.unroute("**/noc/")
    with page.expect_request("**/noc/"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert nora.complaints == []


def test_without_scripts_forms_do_the_same(
    live_server: Any, alarms: None, reader: Callable[..., Reader]
) -> None:
    nora = reader(live_server.url, java_script_enabled=False)
    nora.be_signed_in("nora")
    nora.open("/noc/")
    page = nora.page
    page.get_by_role("link", name="More rhino is silent").click()
    page.get_by_label("Note").fill("Urs drives there")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("The alarm is acknowledged.")).to_be_visible()
    expect(page.get_by_text("Urs drives there")).to_be_visible()
    page.get_by_role("button", name="Assign to me").click()
    page.get_by_label("Silence it").select_option("until a time that I choose")
    page.get_by_role("button", name="Silence", exact=True).click()
    expect(page.get_by_text("Choose when the silence ends.")).to_be_visible()
    page.get_by_label("Silence it").select_option("for 8 hours")
    page.get_by_role("button", name="Silence", exact=True).click()
    expect(page.get_by_role("button", name="Stop silencing")).to_be_visible()
    state = OperatorState.objects.get()
    assert state.assigned_to is not None
    assert (state.note, state.assigned_to.username, state.silenced_by) == ("Urs drives there", "nora", "nora")
    nora.open("/noc/")
    page.get_by_text("Silenced (1)").click()
    page.get_by_role("button", name="Stop silencing rhino is silent").click()
    expect(page.get_by_role("heading", name="Acknowledged (1)")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1920, 1080), (3840, 2160)])
def test_the_wall_fits_its_screen_and_is_readable_from_a_distance(
    live_server: Any, alarms: None, isp: Isp, reader: Callable[..., Reader], width: int, height: int
) -> None:
    Router.objects.update(locked_since=clock.now())
    alarms_watch(now=clock.now())
    Alarm.objects.filter(kind="withheld").update(
        name="a-router-with-a-very-long-name-that-goes-on-and-on-for-ever"
    )
    nora = reader(live_server.url, viewport={"width": width, "height": height})
    nora.be_signed_in("nora")
    nora.open("/noc/wall/")
    page = nora.page
    expect(page.get_by_text("rhino is silent")).to_be_visible()
    beyond = page.evaluate(
        """() => [...document.querySelectorAll("#wall *")].filter((each) => {
             const box = each.getBoundingClientRect();
             return box.bottom > innerHeight + 1 || box.right > innerWidth + 1;
           }).map((each) => each.className || each.tagName)"""
    )
    assert beyond == []
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")
    smallest = page.evaluate(
        """() => Math.min(...[...document.querySelectorAll("#wall .ll-wall-worst span, #wall dt")]
             .map((each) => parseFloat(getComputedStyle(each).fontSize))) / innerHeight"""
    )
    assert smallest >= 0.029, "a fortieth of the screen's height or so"
    assert nora.accessibility_violations() == []
    assert nora.complaints == []


def test_the_wall_refreshes_automatically_and_warns_when_the_portal_is_gone(
    live_server: Any, alarms: None, reader: Callable[..., Reader]
) -> None:
    nora = reader(live_server.url, viewport={"width": 1366, "height": 768})
    nora.be_signed_in("nora")
    nora.open("/noc/wall/")
    page = nora.page
    expect(page.get_by_text("rhino is silent")).to_be_visible()
    RouterSilence.objects.update(until=clock.now())
    alarms_watch(now=clock.now())
    expect(page.get_by_text("Nothing new is wrong")).to_be_visible(timeout=15_000)
    page.route("**/noc/wall/", lambda route: route.abort())
    expect(page.get_by_text("The portal does not answer")).to_be_visible(timeout=15_000)
    page.unroute("**/noc/wall/")
    expect(page.get_by_text("The portal does not answer")).to_be_hidden(timeout=15_000)
