"""The portal tests a line with frames before the handover: it hands over a good line and undoes a bad one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import Customer, User
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.core.environment import ActivationTestMode
from portal.inventory.models import ObservedRouter, Router
from portal.vll.convergence.claims import routers_due
from portal.vll.models import ActivationTest, Vll
from portal.vll.operations.activation_test_lifecycle import CLAIM, TRY_AGAIN, activation_tests_resend
from portal.vll.operations.modify_line import order_suspend
from portal.vll.operations.order_approval import order_approve
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.retry_order import order_retry
from portal.vll.sentences import activation_test_sentence
from provisioning.agent_client import Refused, Unreachable
from provisioning.frame_tests import CANNOT, activation_test
from provisioning.plan_preview import pending_order_preview
from tests.integration.activation_testing import Underlay, apart, built, carry_out, event_data, requests_for
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, modify, order
from tests.integration.raised_alarms import alarm_texts
from tests.integration.requested_tasks import forget_requests
from tests.integration.router_answers import activate, answer, refuse
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def test_new_line_is_built_apart_tested_and_handed_over(isp: Isp, alice: User, underlay: Underlay) -> None:
    placed = order(isp, alice)
    vll = placed.vll
    assert (vll.admin_status, apart(isp, "rhino"), apart(isp, "hippo")) == (
        "admin-testing",
        [True],
        [True],
    )
    answer(vll, "a", "testing")
    assert requests_for(vll) == 0
    answer(vll, "z", "testing")
    # Answers to intents for other lines repeat the state of this line.
    answer(vll, "z", "testing")
    assert requests_for(vll) == 1
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.in_sync) == ("pendingActive", False)
    assert not {isp.routers[name].pk for name in ("rhino", "hippo")} & set(routers_due(now=clock.now()))

    found = carry_out(vll)
    assert (found.state, found.reason, found.largest_passed) == ("passed", "", vll.frame)
    assert [count["frame"] for count in found.directions["a_to_z"]] == [64, 128, 256, 512, 1024, vll.frame]
    assert {count["received"] for direction in found.directions.values() for count in direction} == {100}
    assert found.conditions["routers"]["a"] == {
        "router": "rhino",
        "port": "host-cust1",
        "vpp": "25.10",
        "agent": "0.1.0",
    }
    assert found.conditions["path"] == {
        "required_ip_mtu": vll.frame + 36,
        "ip_mtu": 9000,
        "links": [
            {"link": str(link), "ip_mtu": 9000, "backup": name != "rhino-hippo"}
            for name, link in isp.links.items()
        ],
    }
    assert found.round_trip_us == {"sent": 5, "received": 4, "min": 710, "avg": 805, "max": 1200}
    assert (
        activation_test_sentence(found)
        == f"All test frames of up to {vll.frame:,} bytes arrived, in both directions."
    )
    assert (vll.admin_status, vll.revision, apart(isp, "rhino")) == ("admin-up", 2, [False])
    assert event_data("line_test.passed") == [
        {
            "line_test": str(found.pk),
            "code": "",
            "reason": activation_test_sentence(found),
            "frame": vll.frame,
            "largest_passed": vll.frame,
        }
    ]

    activate(vll)
    vll.refresh_from_db()
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle, vll.in_sync) == ("completed", "active", True)


def test_test_rate_is_limited_by_the_slower_router(
    isp: Isp, alice: User, underlay: Underlay, settings: Any
) -> None:
    settings.LONGLINE_LINE_TEST_PPS = 5000
    Router.objects.filter(name="hippo").update(line_test_pps=300)
    vll = order(isp, alice).vll
    built(vll)
    carry_out(vll)
    assert {each["rate_pps"] for each in underlay.requests} == {300}
    Router.objects.update(line_test_pps=None)
    underlay.requests.clear()
    modify_after_test(vll, alice)
    assert {each["rate_pps"] for each in underlay.requests} == {5000}


def modify_after_test(vll: Vll, alice: User) -> None:
    """Hand the line over, and start the test of its next transport."""
    activate(vll)
    modify(alice, vll, transport="geneve4")
    built(vll)
    carry_out(vll)


@pytest.mark.parametrize(
    "silent",
    [Refused(409, {"type": CANNOT, "detail": "no ping"}), Unreachable("a timeout")],
    ids=["without ping", "unreachable"],
)
def test_unmeasured_round_trips_do_not_fail_a_line(
    isp: Isp, alice: User, underlay: Underlay, silent: Any
) -> None:
    underlay.silent = silent
    vll = order(isp, alice).vll
    built(vll)
    found = carry_out(vll)
    assert (found.state, found.round_trip_us) == ("passed", None)


def test_line_that_loses_large_frames_fails_with_the_largest_that_passes_and_is_removed(
    isp: Isp, alice: User, underlay: Underlay
) -> None:
    underlay.largest = 1400
    placed = order(isp, alice)
    vll = placed.vll
    built(vll)
    found = carry_out(vll)
    assert (found.state, found.reason, found.largest_passed) == ("failed", "large-frames-lost", 1400)
    assert not vll.wanted_present
    for side in "az":
        answer(vll, side, "removed")
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle) == ("failed", "cancelled")
    assert placed.failure is not None
    assert placed.failure["code"] == "line-test-large-frames-lost"
    assert placed.failure["message"] == (
        f"Frames of 1,024 bytes pass, those of {vll.frame:,} do not; the largest that passed had 1,400: a"
        f" link on this path carries less than its MTU allows ({isp.links['rhino-hippo']})."
    )


def test_fragmented_frames_do_not_pass(
    isp: Isp, alice: User, underlay: Underlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = underlay.send_test_frames

    def send_fragmented(**values: Any) -> Any:
        if values["frame"] > 1400:
            underlay.pieces += 2 * values["count"]
        return whole(**values)

    monkeypatch.setattr(underlay, "send_test_frames", send_fragmented)
    vll = order(isp, alice).vll
    built(vll)
    found = carry_out(vll)
    assert (found.state, found.largest_passed) == ("failed", 1400)


def test_advisory_test_hands_the_line_over_with_any_result(
    isp: Isp, alice: User, underlay: Underlay, settings: Any
) -> None:
    settings.LONGLINE_LINE_TEST = ActivationTestMode.ADVISORY
    underlay.largest = 0
    vll = order(isp, alice).vll
    built(vll)
    assert carry_out(vll).reason == "nothing-arrives"
    activate(vll)
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.admin_status) == ("active", "admin-up")


def test_no_test_is_recorded_where_tests_are_off(
    isp: Isp, alice: User, underlay: Underlay, settings: Any
) -> None:
    settings.LONGLINE_LINE_TEST = ActivationTestMode.OFF
    vll = order(isp, alice).vll
    assert (vll.admin_status, vll.activation_tests.count()) == ("admin-up", 0)


def test_router_that_cannot_send_test_frames_is_named_and_the_line_is_handed_over(
    isp: Isp, alice: User, underlay: Underlay
) -> None:
    ObservedRouter.objects.filter(router__name="hippo").update(line_tests=False)
    vll = order(isp, alice).vll
    [found] = vll.activation_tests.all()
    assert (vll.admin_status, found.state, found.reason) == ("admin-up", "not_tested", "router-cannot")
    assert activation_test_sentence(found).startswith("hippo cannot send test frames")
    activate(vll)
    vll.refresh_from_db()
    assert vll.lifecycle == "active"


def test_line_on_one_router_has_no_tunnel_to_test(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice, z_end=end(isp, "rhino:host-cust2")).vll
    [found] = vll.activation_tests.all()
    assert (vll.encapsulation, found.state, found.reason) == ("l2xc", "not_tested", "no-tunnel")


def test_changed_transport_is_tested_and_restored_after_a_failure(
    isp: Isp, alice: User, underlay: Underlay
) -> None:
    vll = order(isp, alice).vll
    built(vll)
    carry_out(vll)
    activate(vll)
    underlay.largest = 100
    changed = modify(alice, vll, transport="geneve4")
    assert (vll.admin_status, vll.encapsulation) == ("admin-testing", "geneve")
    built(vll)
    assert carry_out(vll).state == "failed"
    assert (vll.admin_status, vll.encapsulation) == ("admin-up", "vxlan")
    activate(vll)
    changed.refresh_from_db()
    vll.refresh_from_db()
    assert (changed.state, vll.lifecycle) == ("failed", "active")
    assert event_data("vll.drift") == []


def test_moved_end_is_tested_and_other_changes_are_not(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    built(vll)
    carry_out(vll)
    activate(vll)
    modify(alice, vll, cir_bps=2 * GBIT)
    assert vll.admin_status == "admin-up"
    activate(vll)
    assert vll.activation_tests.count() == 1


def test_suspended_line_is_suspended_again_after_its_test(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    built(vll)
    carry_out(vll)
    activate(vll)
    vll.refresh_from_db()
    order_suspend(user=alice, vll=vll, now=clock.now())
    activate(vll)
    vll.refresh_from_db()
    assert vll.lifecycle == "suspended"
    modify(alice, vll, transport="geneve4")
    built(vll)
    carry_out(vll)
    assert vll.admin_status == "admin-down"
    activate(vll)
    vll.refresh_from_db()
    assert vll.lifecycle == "suspended"


def test_order_pending_approval_is_tested_after_approval(
    isp: Isp, dairy: Customer, alice: User, nora: User, underlay: Underlay
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=1)
    placed = order(isp, alice)
    assert apart(isp, "rhino") == []
    order_approve(user=nora, order=placed, now=clock.now())
    assert apart(isp, "rhino") == [True]
    built(placed.vll)
    carry_out(placed.vll)
    activate(placed.vll)
    placed.refresh_from_db()
    assert placed.state == "completed"


def test_plan_of_an_order_pending_approval_shows_the_state_after_the_test(
    isp: Isp, dairy: Customer, alice: User, underlay: Underlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("provisioning.plan_preview.agent_of", underlay.agent_of)
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=1)
    placed = order(isp, alice)
    for preview in pending_order_preview(placed, now=clock.now()):
        [ours] = preview.intent.present
        assert (ours.vll, "testing" in ours.members) == (placed.vll_id, False)
        assert not [each for each in preview.differences if each["field"] == "testing"]
    assert apart(isp, "rhino") == []


def test_order_cancelled_before_its_test_is_not_tested(isp: Isp, alice: User, underlay: Underlay) -> None:
    placed = order(isp, alice)
    built(placed.vll)
    [test] = placed.vll.activation_tests.all()
    order_cancel(user=alice, order=placed, now=clock.now())
    activation_test(test.pk)
    test.refresh_from_db()
    assert test.state == "waiting"
    activation_tests_resend(now=clock.now())
    test.refresh_from_db()
    assert (test.state, test.reason) == ("not_tested", "called-off")
    for side in "az":
        answer(placed.vll, side, "removed")
    placed.refresh_from_db()
    assert placed.state == "cancelled"


def test_refusal_during_the_building_fails_the_order(isp: Isp, alice: User, underlay: Underlay) -> None:
    placed = order(isp, alice)
    refuse(placed.vll, "a")
    for side in "az":
        answer(placed.vll, side, "removed")
    placed.refresh_from_db()
    assert placed.state == "failed"


def test_refused_change_can_be_retried_immediately(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    built(vll)
    carry_out(vll)
    activate(vll)
    changed = modify(alice, vll, transport="geneve4")
    refuse(vll, "z")
    activate(vll)
    changed.refresh_from_db()
    assert changed.state == "failed"
    again = order_retry(user=alice, order=changed, now=clock.now())
    assert [test.state for test in vll.activation_tests.order_by("created_at")] == [
        "passed",
        "not_tested",
        "waiting",
    ]
    vll.refresh_from_db()
    built(vll)
    carry_out(vll)
    activate(vll)
    again.refresh_from_db()
    assert again.state == "completed"


def test_agent_that_became_too_old_hands_the_line_over_untested(
    isp: Isp, alice: User, underlay: Underlay
) -> None:
    vll = order(isp, alice).vll
    ObservedRouter.objects.filter(router__name="hippo").update(line_tests=False)
    assert apart(isp, "hippo") == [False]
    answer(vll, "a", "testing")
    answer(vll, "z", "verified")
    vll.refresh_from_db()
    [found] = vll.activation_tests.all()
    assert (found.state, found.routers, vll.admin_status) == ("not_tested", ["hippo"], "admin-up")
    activate(vll)
    vll.refresh_from_db()
    assert vll.lifecycle == "active"


@pytest.mark.parametrize(
    "outcome",
    [
        Unreachable("the connection was refused"),
        Refused(409, {"type": "urn:longline:error:not-testing", "detail": "it is not there yet"}),
    ],
    ids=["unreachable", "not there yet"],
)
def test_failed_attempt_is_repeated_with_growing_pauses(
    isp: Isp, alice: User, underlay: Underlay, outcome: Any
) -> None:
    vll = order(isp, alice).vll
    built(vll)
    underlay.outcome = outcome
    now = clock.now()
    test = carry_out(vll, now=lambda: now)
    assert (test.state, test.failures) == ("waiting", 1)
    before = requests_for(vll)
    activation_tests_resend(now=now)
    assert requests_for(vll) == before
    activation_tests_resend(now=now + TRY_AGAIN)
    assert requests_for(vll) == before + 1
    underlay.outcome = None
    assert activation_test(test.pk, now=lambda: now + TRY_AGAIN)
    test.refresh_from_db()
    assert test.state == "passed"


def test_router_that_reports_missing_support_is_not_tested(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    built(vll)
    underlay.outcome = Refused(409, {"type": CANNOT, "detail": "VPP 24.02 has no pg_delete_interface"})
    test = carry_out(vll)
    assert (test.state, test.reason, vll.admin_status) == ("not_tested", "router-cannot", "admin-up")


def test_dead_worker_is_replaced_and_two_never_test_together(
    isp: Isp, alice: User, underlay: Underlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    vll = order(isp, alice).vll
    built(vll)
    [test] = vll.activation_tests.all()
    now = clock.now()

    def kill_worker(*args: Any, **kwargs: Any) -> Any:
        assert not activation_test(test.pk, now=lambda: now)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(underlay, "send_test_frames", kill_worker)
        with pytest.raises(SystemExit):
            activation_test(test.pk, now=lambda: now)
    assert not activation_test(test.pk, now=lambda: now + CLAIM - timedelta(seconds=1))
    before = requests_for(vll)
    activation_tests_resend(now=now + CLAIM + timedelta(seconds=1))
    assert requests_for(vll) == before + 1
    assert activation_test(test.pk, now=lambda: now + CLAIM + timedelta(seconds=1))
    test.refresh_from_db()
    assert test.state == "passed"


def test_lost_message_is_replaced(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    built(vll)
    forget_requests()
    [test] = vll.activation_tests.all()
    activation_tests_resend(now=test.created_at + TRY_AGAIN - timedelta(microseconds=1))
    assert requests_for(vll) == 0
    activation_tests_resend(now=test.created_at + TRY_AGAIN)
    assert requests_for(vll) == 1


def test_waiting_message_is_not_sent_again_by_each_sweep(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    built(vll)
    [test] = vll.activation_tests.all()
    now, before = clock.now() + 2 * TRY_AGAIN, requests_for(vll)
    for seconds in (0, 5, 25):
        activation_tests_resend(now=now + timedelta(seconds=seconds))
    assert requests_for(vll) == before + 1
    underlay.outcome = Unreachable("ConnectError: [Errno 111] Connection refused")
    taken = now + timedelta(seconds=32)
    assert activation_test(test.pk, now=lambda: taken)
    # A worker also removes the mark of its message.
    forget_requests()
    activation_tests_resend(now=taken + TRY_AGAIN)
    assert requests_for(vll) == 1


def test_result_is_kept_permanently(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    built(vll)
    test = carry_out(vll)
    changes: list[Callable[[], object]] = [
        lambda: ActivationTest.objects.filter(pk=test.pk).update(state="failed", reason="frames-lost"),
        lambda: ActivationTest.objects.filter(pk=test.pk).delete(),
    ]
    for change in changes:
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change()


@pytest.mark.parametrize("path", ["activation-tests", "tests"])
def test_api_shows_the_tests_of_a_line_to_its_readers(
    isp: Isp, alice: User, charlie: User, underlay: Underlay, path: str
) -> None:
    """``tests`` is the path of release 0.1.0."""
    vll = order(isp, alice).vll
    address = f"/api/v1/vlls/{vll.pk}/{path}"
    [waiting] = client(alice).get(address).json()["results"]
    assert (waiting["state"], waiting["message"], waiting["routers"]) == ("waiting", None, None)
    underlay.largest = 1400
    built(vll)
    carry_out(vll)
    [found] = client(alice).get(address).json()["results"]
    assert (found["state"], found["reason"], found["largest_passed"]) == ("failed", "large-frames-lost", 1400)
    assert found["message"].startswith("Frames of 1,024 bytes pass")
    assert found["path"]["links"][0] == {
        "link": str(isp.links["rhino-hippo"]),
        "ip_mtu": 9000,
        "backup": False,
    }
    assert found["round_trip_us"]["avg"] == 805
    assert found["directions"]["a_to_z"][0] == {
        "frame": 64,
        "sent": 100,
        "received": 100,
        "fragmented": False,
    }
    assert found["routers"]["z"] == {
        "router": "hippo",
        "port": "host-cust1",
        "vpp": "25.10",
        "agent": "0.1.0",
    }
    assert client(alice).get(f"{address}/{found['id']}").json() == found
    assert client(charlie).get(address).status_code == 404
    assert client(charlie).get(f"{address}/{found['id']}").status_code == 404
    ends = {"a_end": end(isp, "rhino:host-cust1", outer=7), "z_end": end(isp, "hippo:host-cust1", outer=7)}
    other = order(isp, alice, **ends).vll
    assert client(alice).get(f"/api/v1/vlls/{other.pk}/{path}/{found['id']}").status_code == 404


def test_test_has_a_printable_page_for_the_lines_readers(
    isp: Isp, alice: User, charlie: User, nora: User, underlay: Underlay
) -> None:
    vll = order(isp, alice).vll
    page = f"/vlls/{vll.pk}/tests/{vll.activation_tests.get().pk}/"
    assert signed_in(alice).get(page).status_code == 404, "the test has not ended"
    built(vll)
    carry_out(vll)
    shown = text(signed_in(alice).get(page))
    for sentence in (
        f"All test frames of up to {vll.frame:,} bytes arrived, in both directions.",
        "rhino:host-cust1",
        "Round trip between the routers 0.81 ms (0.71 to 1.20).",
        f"{isp.links['rhino-hippo']} 9000 always",
        f"{vll.frame} 100 of 100 100 of 100",
    ):
        assert sentence in shown, shown
    details = ("rhino:host-cust1, VPP 25.10, agent 0.1.0", "Transport VXLAN over IPv4")
    assert [detail in shown for detail in details] == [False, False], "only the NOC reads how a line is built"
    assert [detail in text(signed_in(nora).get(page)) for detail in details] == [True, True]
    assert signed_in(charlie).get(page).status_code == 404
    assert f'href="{page}"' in signed_in(alice).get(f"/vlls/{vll.pk}/").content.decode()


def test_failed_test_is_an_alarm_until_a_test_between_the_same_routers_passes(
    isp: Isp, alice: User, underlay: Underlay
) -> None:
    underlay.largest = 1400
    first = order(isp, alice).vll
    built(first)
    carry_out(first)

    def alarmed() -> list[str]:
        return alarm_texts(Kind.TEST_FAILED)

    [alarm] = alarmed()
    assert alarm.startswith("rhino – hippo: Frames of 1,024 bytes pass")
    underlay.largest = 9000
    ends = {"a_end": end(isp, "hippo:host-cust2", outer=7), "z_end": end(isp, "rhino:host-cust2", outer=7)}
    small = order(isp, alice, svc_mtu=1000, **ends).vll
    built(small)
    carry_out(small)
    assert alarmed() == [alarm], "small frames do not verify large ones"
    ends = {"a_end": end(isp, "hippo:host-cust2", outer=8), "z_end": end(isp, "rhino:host-cust2", outer=8)}
    reversed_line = order(isp, alice, **ends).vll
    built(reversed_line)
    carry_out(reversed_line)
    assert alarmed() == []


def test_lines_page_shows_the_test_results(isp: Isp, alice: User, underlay: Underlay) -> None:
    vll = order(isp, alice).vll
    page = f"/vlls/{vll.pk}/"
    assert "Activation tests Being tested" in text(signed_in(alice).get(page))
    built(vll)
    carry_out(vll)
    shown = text(signed_in(alice).get(page))
    assert f"All test frames of up to {vll.frame:,} bytes arrived, in both directions." in shown
    assert f"{vll.frame} 100 of 100 100 of 100" in shown
