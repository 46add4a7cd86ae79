"""Tests of a line in service on request: immediately, or at a scheduled time."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.core.environment import ActivationTestMode
from portal.core.reader_texts import COOKIE
from portal.inventory.models import ObservedRouter, Router
from portal.telemetry.availability import availability
from portal.telemetry.models import OperInterval
from portal.vll.errors import LineBeingTested, OrderIsOpen
from portal.vll.models import ActivationTest, Order, RouterConvergence, Vll
from portal.vll.operations.activation_test_on_demand import (
    LATEST_BEGIN,
    LONGEST_INTERRUPTION,
    activation_test_order,
    activation_test_schedule,
    activation_tests_give_up,
    scheduled_activation_tests_begin,
)
from portal.vll.operations.modify_line import order_suspend
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.retry_order import order_retry
from portal.vll.router_operations.freeze import router_freeze
from provisioning.frame_tests import activation_test
from tests.integration.activation_testing import Underlay, apart, built, carry_out, event_data
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import activate, answer, refuse
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def line(isp: Isp, alice: User, underlay: Underlay) -> Vll:
    """Return a line in service that was tested before its handover."""
    vll = order(isp, alice).vll
    built(vll)
    carry_out(vll)
    activate(vll)
    vll.refresh_from_db()
    assert vll.lifecycle == "active"
    return vll


def order_test(alice: User, vll: Vll, **more: Any) -> Order:
    """Order a test of the line now."""
    test = activation_test_order(user=alice, vll=vll, now=clock.now(), **more)
    vll.refresh_from_db()
    assert test.order is not None
    return test.order


def carried_through(vll: Vll, placed: Order) -> ActivationTest:
    """Let the routers build, send and count, and join the line again."""
    built(vll)
    found = carry_out(vll)
    activate(vll)
    placed.refresh_from_db()
    found.refresh_from_db()
    vll.refresh_from_db()
    return found


def test_line_is_separated_tested_and_joined_again(
    isp: Isp, alice: User, line: Vll, underlay: Underlay
) -> None:
    placed = order_test(alice, line)
    assert (placed.action, line.admin_status, line.lifecycle) == ("test", "admin-testing", "active")
    assert (apart(isp, "rhino"), apart(isp, "hippo")) == ([True], [True])
    found = carried_through(line, placed)
    assert (placed.state, found.state, found.requested_by) == ("completed", "passed", "alice")
    assert (line.lifecycle, line.admin_status, line.in_sync) == ("active", "admin-up", True)
    assert apart(isp, "rhino") == [False]
    assert placed.before == placed.after
    assert found.interruption is not None
    assert found.interrupted_at == found.created_at
    assert found.restored_at == placed.state_at


def test_router_is_not_frozen_during_a_test(isp: Isp, alice: User, nora: User, line: Vll) -> None:
    ObservedRouter.objects.update(freezes=True)
    freeze = {"router": isp.routers["rhino"], "user": nora, "now": clock.now(), "reason": "new line cards"}
    placed = order_test(alice, line)
    with pytest.raises(LineBeingTested):
        router_freeze(**freeze, until=clock.now() + timedelta(hours=1))
    carried_through(line, placed)
    assert router_freeze(**freeze, until=clock.now() + timedelta(hours=1))


def test_failed_line_is_joined_again_and_its_order_fails(
    isp: Isp, alice: User, line: Vll, underlay: Underlay, settings: Any
) -> None:
    settings.LONGLINE_LINE_TEST = ActivationTestMode.OFF
    underlay.largest = 1000
    placed = order_test(alice, line)
    found = carried_through(line, placed)
    assert (placed.state, found.state, found.largest_passed) == ("failed", "failed", 1000)
    assert placed.failure is not None
    assert placed.failure["code"] == "line-test-large-frames-lost"
    assert (line.lifecycle, line.admin_status, line.in_sync) == ("active", "admin-up", True)
    assert found.restored_at == placed.state_at
    shown = text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "This order failed. Frames of 512 bytes pass" in shown
    assert "The NOC rejected this order" not in shown

    underlay.largest = 9000
    again = order_retry(user=alice, order=placed, now=clock.now())
    assert carried_through(line, again).state == "passed"
    assert (again.action, again.state, again.retry_of) == ("test", "completed", placed)


def test_suspended_line_is_tested_and_stays_suspended(alice: User, line: Vll) -> None:
    order_suspend(user=alice, vll=line, now=clock.now())
    activate(line)
    found = carried_through(line, order_test(alice, line))
    assert (line.lifecycle, line.admin_status) == ("suspended", "admin-down")
    assert (found.state, found.interruption) == ("passed", None)


def test_smaller_largest_frame_can_be_requested(alice: User, line: Vll, underlay: Underlay) -> None:
    underlay.largest = 600
    found = carried_through(line, order_test(alice, line, frame=600))
    assert (found.state, found.frame, found.largest_passed) == ("passed", 600, 600)
    assert [count["frame"] for count in found.directions["z_to_a"]] == [64, 128, 256, 512, 600]


def test_interruption_is_maintenance_and_no_outage(alice: User, line: Vll) -> None:
    now = clock.now()
    placed = order_test(alice, line)
    found = carried_through(line, placed)
    OperInterval.objects.filter(vll_id=line.pk).delete()
    begin = now - timedelta(hours=1)
    OperInterval.objects.create(vll_id=line.pk, status="op-down", began_at=begin)
    until = clock.now()
    times = availability(vll=line, since=begin, until=until, now=until)
    assert found.interruption is not None
    assert times["maintenance_s"] == round(found.interruption.total_seconds(), 3) > 0
    whole = (until - begin).total_seconds()
    assert times["down_s"] == pytest.approx(whole - times["maintenance_s"], abs=0.002)
    assert sum(day["maintenance_s"] for day in times["periods"]) == pytest.approx(
        times["maintenance_s"], abs=0.002
    )


def test_test_that_takes_too_long_ends_and_the_line_is_joined_again(isp: Isp, alice: User, line: Vll) -> None:
    placed = order_test(alice, line)
    answer(line, "a", "testing")
    activation_tests_give_up(now=placed.ordered_at + LONGEST_INTERRUPTION)
    assert apart(isp, "rhino") == [True]
    activation_tests_give_up(now=placed.ordered_at + LONGEST_INTERRUPTION + timedelta(seconds=1))
    assert apart(isp, "rhino") == [False]
    activate(line)
    placed.refresh_from_db()
    found = line.activation_tests.get(order=placed)
    assert (placed.state, found.state, found.reason) == ("failed", "not_tested", "took-too-long")
    assert (line.lifecycle, line.admin_status) == ("active", "admin-up")


def test_cancelling_the_order_stops_the_test(alice: User, line: Vll) -> None:
    placed = order_test(alice, line)
    built(line)
    order_cancel(user=alice, order=placed, now=clock.now())
    stale = line.activation_tests.get(order=placed)
    activation_test(stale.pk)
    activate(line)
    placed.refresh_from_db()
    assert (placed.state, line.admin_status) == ("cancelled", "admin-up")
    stale.refresh_from_db()
    assert stale.state == "waiting"
    assert carried_through(line, order_test(alice, line)).state == "passed"
    stale.refresh_from_db()
    assert (stale.state, stale.reason) == ("not_tested", "called-off")


def test_refusal_during_separation_joins_the_line_again(alice: User, line: Vll) -> None:
    placed = order_test(alice, line)
    refuse(line, "z")
    activate(line)
    placed.refresh_from_db()
    assert (placed.state, line.lifecycle, line.admin_status) == ("failed", "active", "admin-up")


def test_untestable_line_is_refused_and_left_alone(
    isp: Isp, alice: User, bob: User, charlie: User, line: Vll
) -> None:
    address = f"/api/v1/vlls/{line.pk}/activation-tests"

    def refused(user: User, body: dict[str, Any], at: str = address) -> tuple[int, str]:
        response = client(user).post(at, body, format="json")
        return response.status_code, response.json()["type"].rpartition("/")[2].rpartition("#")[2].rpartition(
            ":"
        )[2]

    revision = line.revision
    assert refused(charlie, {})[0] == 404
    assert refused(bob, {}) == (403, "not-allowed-to-order")
    for frame in (0, 63, line.frame + 1):
        assert refused(alice, {"frame": frame}) == (422, "line-test-frame-out-of-range")
    now = clock.now()
    for at in (now - timedelta(minutes=1), now + timedelta(days=91)):
        assert refused(alice, {"at": at.isoformat()}) == (422, "line-test-time-out-of-range")
    for body in ({"size": 1}, {"frame": "64"}, {"at": "soon"}):
        assert refused(alice, body)[0] == 422

    Router.objects.filter(name="rhino").update(locked_since=now)
    assert refused(alice, {}) == (409, "router-does-not-answer")
    Router.objects.update(locked_since=None)
    RouterConvergence.objects.create(router=isp.routers["hippo"], failures=1)
    assert refused(alice, {}) == (409, "router-does-not-answer")
    RouterConvergence.objects.update(failures=0)
    ObservedRouter.objects.filter(router__name="hippo").update(reported_at=now - timedelta(minutes=1))
    assert refused(alice, {}) == (409, "router-does-not-answer")
    ObservedRouter.objects.update(reported_at=clock.now())
    for dead in ({"vpp_connected": False}, {"vpp_hangs": True}):
        ObservedRouter.objects.filter(router__name="hippo").update(**dead)
        assert refused(alice, {}) == (409, "router-does-not-answer")
        ObservedRouter.objects.update(vpp_connected=True, vpp_hangs=False)
    ObservedRouter.objects.filter(router__name="rhino").update(line_tests=False)
    assert refused(alice, {}) == (409, "router-sends-no-test-frames")
    ObservedRouter.objects.update(line_tests=True)

    modify(alice, line, cir_bps=2 * 10**9)
    assert refused(alice, {}) == (409, "order-is-open")
    order_cancel(user=alice, order=line.orders.latest("ordered_at"), now=clock.now())
    activate(line)
    line.refresh_from_db()
    assert line.admin_status == "admin-up"
    revision = line.revision

    local = order(
        isp, alice, a_end=end(isp, "rhino:host-cust1", outer=7), z_end=end(isp, "rhino:host-cust2")
    ).vll
    activate(local)
    assert refused(alice, {}, f"/api/v1/vlls/{local.pk}/activation-tests") == (409, "line-has-no-tunnel")
    line.refresh_from_db()
    assert (line.revision, line.admin_status, line.activation_tests.count()) == (revision, "admin-up", 1)

    assert client(alice).post(address, {}, format="json").status_code == 202
    assert refused(alice, {}) == (409, "order-is-open")
    with pytest.raises(OrderIsOpen):
        modify(alice, line, cir_bps=1)


@pytest.mark.parametrize("path", ["activation-tests", "tests"])
def test_api_orders_a_test_and_shows_it(alice: User, line: Vll, path: str) -> None:
    """``tests`` is the path of release 0.1.0."""
    address = f"/api/v1/vlls/{line.pk}/{path}"
    response = client(alice).post(address, {}, format="json")
    assert response.status_code == 202
    ordered = response.json()
    assert response["Location"].endswith(f"{address}/{ordered['id']}")
    assert [each["id"] for each in client(alice).get(address).json()["results"]][:1] == [ordered["id"]]
    assert (ordered["state"], ordered["asked_by"], ordered["interruption_ms"]) == ("waiting", "alice", None)
    line.refresh_from_db()
    carried_through(line, Order.objects.get(pk=ordered["order"]))
    found = client(alice).get(response["Location"]).json()
    assert (found["state"], found["largest_passed"]) == ("passed", line.frame)
    assert found["interruption_ms"] >= 0


def test_scheduled_test_begins_at_its_time(isp: Isp, alice: User, line: Vll) -> None:
    at = clock.now() + timedelta(hours=2)
    address = f"/api/v1/vlls/{line.pk}/activation-tests"
    scheduled = client(alice).post(address, {"at": at.isoformat()}, format="json").json()
    assert (scheduled["state"], scheduled["order"], scheduled["message"]) == ("scheduled", None, None)
    assert [each["reason"] for each in event_data("line_test.scheduled")] == [
        f"To be tested at {at:%Y-%m-%d %H:%M} UTC"
    ]
    twice = client(alice).post(address, {"at": at.isoformat()}, format="json")
    assert (twice.status_code, twice.json()["type"].endswith("line-test-is-scheduled")) == (409, True)
    scheduled_activation_tests_begin(now=at - timedelta(seconds=1))
    assert apart(isp, "rhino") == [False]
    ObservedRouter.objects.update(reported_at=at)
    scheduled_activation_tests_begin(now=at)
    line.refresh_from_db()
    assert apart(isp, "rhino") == [True]
    placed = line.orders.get(action="test")
    assert (placed.ordered_by, placed.activation_tests.get().pk) == (
        "alice",
        line.activation_tests.latest("created_at").pk,
    )
    assert carried_through(line, placed).state == "passed"


def test_scheduled_test_waits_for_another_order_for_a_limited_time(alice: User, line: Vll) -> None:
    at = clock.now() + timedelta(hours=2)
    test = activation_test_schedule(user=alice, vll=line, at=at, now=clock.now())
    ObservedRouter.objects.update(reported_at=at + LATEST_BEGIN)
    modify(alice, line, cir_bps=10**9 // 2)
    scheduled_activation_tests_begin(now=at + LATEST_BEGIN)
    test.refresh_from_db()
    assert test.state == "scheduled"
    scheduled_activation_tests_begin(now=at + LATEST_BEGIN + timedelta(seconds=1))
    test.refresh_from_db()
    assert (test.state, test.reason, test.order) == ("not_tested", "not-begun", None)
    [event] = event_data("line_test.not_tested")
    assert event["reason"].startswith("It could not start on time. Order ")


@pytest.mark.parametrize("loses", ["membership", "account", "customer"])
def test_scheduled_test_does_not_begin_after_its_customer_or_orderer_left(
    isp: Isp, alice: User, bob: User, line: Vll, loses: str
) -> None:
    at = clock.now() + timedelta(hours=2)
    test = activation_test_schedule(user=alice, vll=line, at=at, now=clock.now())
    ObservedRouter.objects.update(reported_at=at)
    if loses == "membership":
        alice.memberships.all().delete()
    elif loses == "account":
        User.objects.filter(pk=alice.pk).update(is_active=False)
    else:
        Customer.objects.filter(pk=line.customer_id).update(retired_at=clock.now())
    scheduled_activation_tests_begin(now=at)
    test.refresh_from_db()
    assert (test.state, test.reason) == ("not_tested", "not-begun")
    assert "not order for it" in test.conditions["refusal"]
    assert apart(isp, "rhino") == [False]


@pytest.mark.parametrize("path", ["activation-tests", "tests"])
def test_only_a_scheduled_test_can_be_cancelled_that_way(
    alice: User, bob: User, charlie: User, line: Vll, path: str
) -> None:
    test = activation_test_schedule(
        user=alice, vll=line, at=clock.now() + timedelta(hours=2), now=clock.now()
    )
    address = f"/api/v1/vlls/{line.pk}/{path}/{test.pk}"
    assert client(charlie).delete(address).status_code == 404
    assert client(bob).delete(address).status_code == 403
    assert client(alice).delete(address).status_code == 204
    found = client(alice).get(address).json()
    assert (found["state"], found["reason"], found["message"]) == (
        "not_tested",
        "called-off",
        "It was cancelled.",
    )
    assert client(alice).delete(address).status_code == 409


def test_page_warns_asks_and_shows_the_interruption(alice: User, bob: User, line: Vll) -> None:
    pages, page = signed_in(alice), f"/vlls/{line.pk}/test/"
    assert f'href="{page}"' in pages.get(f"/vlls/{line.pk}/").content.decode()
    assert "interrupts this line for a few seconds" in text(pages.get(page))
    assert signed_in(bob).post(page).status_code == 403
    assert pages.post(page, {"at": "2001-01-01T00:00"}).status_code == 422
    assert pages.post(page, {"at": ""}).status_code == 302
    assert pages.post(page, {"at": ""}).status_code == 422
    line.refresh_from_db()
    carried_through(line, line.orders.get(action="test"))
    shown = text(pages.get(f"/vlls/{line.pk}/"))
    assert re.search(r"It interrupted the line for at most \d+\.\d s, which counts as maintenance", shown)

    at = clock.now() + timedelta(days=1)
    assert pages.post(page, {"at": f"{at:%Y-%m-%dT%H:%M}"}).status_code == 302
    scheduled = line.activation_tests.get(state="scheduled")
    call_off = f"/vlls/{line.pk}/tests/{scheduled.pk}/call-off/"
    assert call_off in pages.get(f"/vlls/{line.pk}/").content.decode()
    assert call_off not in signed_in(bob).get(f"/vlls/{line.pk}/").content.decode()
    pages.post(call_off)
    scheduled.refresh_from_db()
    assert scheduled.reason == "called-off"


def test_page_shows_and_reads_times_in_the_readers_zone(alice: User, line: Vll) -> None:
    reader = signed_in(alice)
    reader.cookies[COOKIE] = "Asia/Kathmandu"
    address = f"/vlls/{line.pk}/test/"
    assert "When (Asia/Kathmandu)" in text(reader.get(address))
    day = (clock.now() + timedelta(days=3)).date()
    sent = {"at": f"{day}T02:00", "at_zone": "Asia/Kathmandu"}
    assert reader.post(address, sent).status_code == 302
    scheduled = line.activation_tests.get(state="scheduled").scheduled_for
    assert scheduled == datetime(day.year, day.month, day.day, 2, tzinfo=UTC) - timedelta(hours=5, minutes=45)
    page = text(reader.get(f"/vlls/{line.pk}/"))
    assert f"To be tested at {day} 02:00 UTC+05:45" in page
    assert [page[at.start() - 40 : at.end()] for at in re.finditer(r"\bUTC\b(?!\+05:45|\))", page)] == []
    # Programs read UTC in every browser zone.
    api = client(alice)
    api.cookies[COOKIE] = "Asia/Kathmandu"
    shown = api.get(
        f"/api/v1/vlls/{line.pk}/activation-tests/{line.activation_tests.get(state='scheduled').pk}"
    ).json()
    assert datetime.fromisoformat(shown["scheduled_for"]) == scheduled
    assert shown["scheduled_for"].endswith("Z")


def test_ambiguous_time_needs_a_choice_on_the_page(alice: User, line: Vll) -> None:
    reader, address = signed_in(alice), f"/vlls/{line.pk}/test/"
    refused = reader.post(address, {"at": "2027-10-31T02:30", "at_zone": "Europe/Berlin"})
    assert refused.status_code == 422
    assert "02:30 occurs twice that night in Europe/Berlin. Choose which one you mean." in text(refused)
    assert "the first, 02:30 CEST the second, 02:30 CET" in text(refused)
    skipped = reader.post(address, {"at": "2027-03-28T02:30", "at_zone": "Europe/Berlin"})
    assert "The clocks in Europe/Berlin skip 02:30 that night." in text(skipped)
    assert not line.activation_tests.filter(state="scheduled").exists()
