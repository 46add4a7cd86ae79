"""The browser names its time zone, and inputs, sentences and times on pages use it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from portal.accounts.models import User
from portal.core import clock
from portal.vll.models import Vll
from tests.browser.reader import Reader
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("zone", "named", "offset_h"), [("Asia/Tokyo", "JST", 9), ("Asia/Kathmandu", "UTC+05:45", 5.75)]
)
def test_a_test_is_scheduled_in_the_zone_of_the_browser(
    live_server: Any,
    isp: Isp,
    alice: User,
    reader: Callable[..., Reader],
    zone: str,
    named: str,
    offset_h: float,
) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    person = reader(live_server.url, timezone_id=zone)
    person.be_signed_in("alice")
    person.open("/")
    person.open(f"/vlls/{vll.pk}/test/")
    day = (clock.now() + timedelta(days=3)).date()
    # Chromium may use an older name of the zone.
    at = person.page.get_by_label("When (Asia/")
    at.fill(f"{day}T02:00")
    at.press("Enter")
    expect(person.page.get_by_text("The test is scheduled.")).to_be_visible()
    expect(person.page.get_by_text(f"To be tested at {day} 02:00 {named}").first).to_be_attached()
    scheduled = Vll.objects.get(pk=vll.pk).activation_tests.get(state="scheduled").scheduled_for
    local = datetime(day.year, day.month, day.day, 2, tzinfo=UTC)
    assert scheduled == local - timedelta(hours=offset_h)
    times = person.page.locator("time").all_text_contents()
    assert times
    assert all(text.endswith(named) for text in times)


def test_the_window_of_a_graph_names_its_zone(
    live_server: Any, isp: Isp, alice: User, reader: Callable[..., Reader]
) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    person = reader(live_server.url, timezone_id="Asia/Tokyo")
    person.be_signed_in("alice")
    person.open(f"/vlls/{vll.pk}/")
    person.page.locator("[data-more]").first.evaluate("each => each.open = true")
    expect(person.page.get_by_label("From (Asia/Tokyo)").first).to_be_visible()
    expect(person.page.get_by_label("To (Asia/Tokyo)").first).to_be_visible()
