"""Committed changes appear at once through the stream, without polling, or by polling without a stream."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from csp.constants import SELF
from playwright.sync_api import Page, expect

from devstack.process import free_ports
from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import Port
from portal.vll.models import Vll
from portal.vll.operations.modify_line import order_suspend, vll_describe
from portal.vll.router_operations.actions import router_maintenance_set
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.live_process import LiveProcess, live_process
from tests.integration.orders import order
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def live(live_server: Any, settings: Any) -> Iterator[LiveProcess]:
    """Yield a stream of another origin than the pages, as in a demo."""
    (port,) = free_ports(1)
    settings.LONGLINE_LIVE_URL = f"http://localhost:{port}/live/"
    directives = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    allowed = [SELF, f"http://localhost:{port}"]
    settings.CONTENT_SECURITY_POLICY = {"DIRECTIVES": {**directives, "connect-src": allowed}}
    variables = {"LONGLINE_LIVE_URL": settings.LONGLINE_LIVE_URL, "BASE_URL": live_server.url}
    with live_process(variables, port) as process:
        yield process


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice, description="Milk run").vll
    activate(vll)
    vll.refresh_from_db()
    return vll


def open_without_polling(person: Reader, path: str) -> Page:
    """Open a page without polling and wait until its stream is open."""
    person.stop_polls()
    with person.page.expect_event("response", lambda answer: "/live/?" in answer.url) as opened:
        person.open(path)
    assert opened.value.status == 200
    return person.page


def hide(page: Page, hidden: bool) -> None:
    page.evaluate(
        """hidden => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_a_suspended_line_is_shown_as_suspended_at_once_on_all_pages(
    live: LiveProcess, live_server: Any, alice: User, vll: Vll, reader: Callable[..., Reader]
) -> None:
    people = [reader(live_server.url) for _ in range(3)]
    for person in people:
        person.be_signed_in("alice")
    line, overview, orders = (
        open_without_polling(person, path)
        for person, path in zip(people, (f"/vlls/{vll.pk}/", "/", "/orders/"), strict=True)
    )
    order_suspend(user=alice, vll=vll, now=clock.now())
    expect(line.locator("#vll-status .ll-health")).to_contain_text("Changing")
    expect(overview.locator("#overview")).to_contain_text("Open orders")
    expect(orders.locator("#orders")).to_contain_text("suspend")
    vll.refresh_from_db()
    for side in "az":
        answer(vll, side, "verified")
    expect(line.locator("#vll-status .ll-health")).to_contain_text("Suspended")
    expect(overview.locator("#overview")).to_contain_text("Suspended")
    assert [person.complaints for person in people] == [[], [], []]


def test_the_nocs_pages_show_the_current_network(
    live: LiveProcess, live_server: Any, isp: Isp, nora: User, reader: Callable[..., Reader]
) -> None:
    people = [reader(live_server.url) for _ in range(2)]
    for person in people:
        person.be_signed_in("nora")
    rhino = isp.routers["rhino"]
    router = open_without_polling(people[0], f"/noc/routers/{rhino.pk}/")
    ports = open_without_polling(people[1], "/ports/")
    router_maintenance_set(router=rhino, on=True, user=nora, now=clock.now())
    expect(router.locator("#router")).to_contain_text("Under maintenance")
    Port.objects.filter(router=rhino, interface="host-cust1").update(description="the cellar's")
    expect(ports.locator("#ports")).to_contain_text("the cellar's")
    assert [person.complaints for person in people] == [[], []]


def test_a_page_polls_again_when_the_stream_is_gone(
    live: LiveProcess, live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    person = reader(live_server.url)
    person.be_signed_in("alice")
    with person.page.expect_event("response", lambda answer: "/live/?" in answer.url):
        person.open(f"/vlls/{vll.pk}/")
    live.process.kill()
    live.process.wait()
    answer(vll, "a", "verified")
    expect(person.page.locator("#vll-status")).to_contain_text("In place")
    expect(person.page.locator("#connection-lost")).to_be_hidden()


def test_a_page_polls_where_no_stream_is_served(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    vll = order(isp, alice, description="Milk run").vll
    person = reader(live_server.url)
    person.be_signed_in("alice")
    with person.page.expect_event("response", lambda answer: "/live/?" in answer.url) as response:
        person.open(f"/vlls/{vll.pk}/")
    assert response.value.status == 204
    answer(vll, "a", "verified")
    expect(person.page.locator("#vll-status")).to_contain_text("In place")
    assert person.complaints == []


def test_a_hidden_tab_requests_nothing_and_refreshes_when_it_is_visible(
    live: LiveProcess, live_server: Any, alice: User, vll: Vll, reader: Callable[..., Reader]
) -> None:
    people = [reader(live_server.url) for _ in range(2)]
    for person in people:
        person.be_signed_in("alice")
    hidden, visible = (open_without_polling(person, f"/vlls/{vll.pk}/") for person in people)
    hide(hidden, True)
    requests: list[str] = []
    hidden.on("request", lambda request: requests.append(request.url))
    vll_describe(user=alice, vll=vll, description="Cheese run", now=clock.now())
    expect(visible.locator("#vll-status h1")).to_have_text("Cheese run")
    assert requests == []
    expect(hidden.locator("#vll-status h1")).to_have_text("Milk run")
    hide(hidden, False)
    expect(hidden.locator("#vll-status h1")).to_have_text("Cheese run")


def test_unfolded_details_stay_unfolded(
    live: LiveProcess, live_server: Any, alice: User, vll: Vll, reader: Callable[..., Reader]
) -> None:
    person = reader(live_server.url)
    person.be_signed_in("alice")
    page = open_without_polling(person, f"/vlls/{vll.pk}/")
    page.locator("#vll-status summary").first.click()
    vll_describe(user=alice, vll=vll, description="Cheese run", now=clock.now())
    expect(page.locator("#vll-status h1")).to_have_text("Cheese run")
    expect(page.locator("#vll-status details").first).to_have_attribute("open", "")
    assert person.complaints == []
