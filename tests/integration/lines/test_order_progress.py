"""From acknowledged to a terminal state: only on both routers' answers about the wanted revision."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import User
from portal.allocation.models import BandwidthBooking, PortVlanLease, VniLease
from portal.allocation.tunnel_leases import cooled_down_leases_free
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import Port
from portal.vll.errors import NotAllowedToOrder, OrderIsOpen, WrongLifecycle
from portal.vll.models import Attempt, Order, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.order_progress import attempt_record, orders_overdue_alarm
from portal.vll.operations.state_compare_and_swap import ForbiddenTransition, order_move
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate, answer, refuse

pytestmark = pytest.mark.django_db


def test_one_verified_end_is_in_progress_and_two_are_active(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "a", "verified")
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle, placed.vll.in_sync) == ("inProgress", "pendingActive", False)
    answer(placed.vll, "z", "verified")
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle, placed.vll.in_sync) == ("completed", "active", True)
    assert list(Event.objects.order_by("id").values_list("kind", flat=True)) == [
        "order.acknowledged",
        # These routers send no test frames.
        "line_test.not_tested",
        "order.inProgress",
        "order.completed",
        "vll.active",
    ]


@pytest.mark.parametrize("status", ["pending", "failed"])
def test_what_may_still_succeed_keeps_the_order_open(isp: Isp, alice: User, status: str) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "z", "verified")
    answer(placed.vll, "a", status, reason={"code": "unknown_interface", "message": "…"})
    placed.refresh_from_db()
    assert (placed.state, placed.vll.wanted_present) == ("inProgress", True)
    assert placed.vll.ends.get(side="a").reason["code"] == "unknown_interface"
    answer(placed.vll, "a", "verified")
    placed.refresh_from_db()
    assert placed.state == "completed"


def test_an_answer_about_another_revision_or_from_another_router_counts_for_nothing(
    isp: Isp, alice: User
) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "a", "verified", revision=2)
    answer(placed.vll, "a", "verified", router=isp.routers["hippo"])
    assert placed.vll.ends.get(side="a").status == "unasked"


def test_a_failed_add_leaves_nothing_on_either_router_and_says_why(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    vll = placed.vll
    answer(vll, "z", "verified")
    forget_requests()
    refuse(vll, "a")
    placed.refresh_from_db()
    assert (placed.state, vll.wanted_present, vll.revision) == ("inProgress", False, 2)
    assert {args[0] for _, args in requested()} == {isp.routers["rhino"].pk, isp.routers["hippo"].pk}
    answer(vll, "a", "removed")
    placed.refresh_from_db()
    assert placed.state == "inProgress"
    assert PortVlanLease.objects.filter(owner=vll.pk).count() == 2
    answer(vll, "z", "removed")
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle) == ("failed", "cancelled")
    assert (placed.failure["router"], placed.failure["side"], placed.failure["object"]) == (
        "rhino",
        "a",
        "host-cust1.7",
    )
    assert not PortVlanLease.objects.exists()
    assert not BandwidthBooking.objects.exists()


def test_a_late_answer_about_the_old_revision_does_not_undo_a_clean_up(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    refuse(placed.vll, "a")
    answer(placed.vll, "a", "removed")
    answer(placed.vll, "a", "verified", revision=1)
    assert placed.vll.ends.get(side="a").status == "removed"


def test_removal_gives_leases_back_only_when_both_routers_confirm(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    removal = order_delete(user=alice, vll=vll, now=clock.now())
    vll.refresh_from_db()
    assert (removal.state, vll.lifecycle, vll.wanted_present) == ("acknowledged", "pendingTerminate", False)
    answer(vll, "a", "removed")
    assert BandwidthBooking.objects.filter(owner=vll.pk).count() == 2
    answer(vll, "z", "removed")
    removal.refresh_from_db()
    assert (removal.state, vll.lifecycle) == ("completed", "terminated")
    assert not Port.objects.exclude(booked_bps=0).exists()
    order(isp, alice)


def test_a_released_vni_rests_before_it_can_be_leased_again(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    answer(vll, "z", "removed")
    now = clock.now()
    assert VniLease.objects.get(vni=vll.vni).released_at is not None
    assert cooled_down_leases_free(now=now) == 0
    assert cooled_down_leases_free(now=now + timedelta(hours=1)) == 1
    assert not VniLease.objects.exists()


def test_a_removal_that_a_router_refuses_stays_pending(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    removal = order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "failed", permanent=True, reason={"code": "vpp_refused", "message": "…", "retval": -1})
    removal.refresh_from_db()
    assert (removal.state, vll.lifecycle) == ("inProgress", "pendingTerminate")
    assert BandwidthBooking.objects.filter(owner=vll.pk).count() == 2


def test_an_order_under_way_is_cancelled_and_cleaned(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "a", "verified")
    order_delete(user=alice, vll=placed.vll, now=clock.now())
    placed.refresh_from_db()
    assert placed.state == "pendingCancellation"
    with pytest.raises(OrderIsOpen):
        order_delete(user=alice, vll=placed.vll, now=clock.now())
    answer(placed.vll, "a", "removed")
    answer(placed.vll, "z", "removed")
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle) == ("cancelled", "cancelled")
    with pytest.raises(WrongLifecycle):
        order_delete(user=alice, vll=placed.vll, now=clock.now())


def test_a_viewer_may_not_remove(isp: Isp, alice: User, bob: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    with pytest.raises(NotAllowedToOrder):
        order_delete(user=bob, vll=vll, now=clock.now())
    vll.refresh_from_db()
    assert vll.lifecycle == "active"


def test_noc_gets_one_alarm_for_an_order_that_takes_too_long(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    later = placed.ordered_at + timedelta(seconds=119)
    assert orders_overdue_alarm(now=placed.ordered_at + timedelta(seconds=60)) == 0
    assert orders_overdue_alarm(now=later) == 1
    assert orders_overdue_alarm(now=later) == 0
    assert Event.objects.filter(kind="order.overdue", order_id=placed.pk).count() == 1


def test_a_transition_that_the_table_lacks_is_our_mistake(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    with pytest.raises(ForbiddenTransition):
        order_move(placed, "completed", now=clock.now())


def test_finished_order_never_changes(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    activate(placed.vll)
    with pytest.raises(IntegrityError, match="is completed"), transaction.atomic():
        Order.objects.filter(pk=placed.pk).update(state="failed")


def test_attempts_are_append_only(isp: Isp) -> None:
    now = clock.now()
    attempt_record(
        router=isp.routers["rhino"],
        generation=1,
        intent_sha256="0" * 64,
        content_sha256="1" * 64,
        outcome=Attempt.Outcome.UNREACHABLE,
        answer={"error": "timeout"},
        started_at=now,
        now=now,
    )
    attempt = Attempt.objects.get()
    for change in (
        {"generation": 2},
        {"times": 3},
        {"times": 0},
        {"times": 2, "answer": {"error": "nothing"}},
        {"times": 2, "started_at": now - timedelta(days=1)},
        {"times": 2, "finished_at": now - timedelta(days=1)},
        {"times": 2, "kept": True},
        {"outcome": "answered"},
        {"kept": True, "content_sha256": ""},
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            Attempt.objects.filter(pk=attempt.pk).update(**change)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        attempt.delete()


def test_a_router_that_later_loses_an_end_makes_the_line_out_of_sync_and_it_heals(
    isp: Isp, alice: User
) -> None:
    placed = order(isp, alice)
    activate(placed.vll)
    refuse(placed.vll, "z")
    assert (placed.vll.in_sync, placed.vll.lifecycle, placed.vll.wanted_present) == (False, "active", True)
    answer(placed.vll, "z", "verified")
    assert placed.vll.in_sync


def test_a_local_cross_connect_is_settled_by_one_router(isp: Isp, alice: User) -> None:
    placed = order(isp, alice, z_end=end(isp, "rhino:host-cust2"))
    activate(placed.vll)
    placed.refresh_from_db()
    assert placed.state == "completed"


def test_an_end_verified_at_an_older_revision_does_not_complete_an_order(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "a", "verified")
    Vll.objects.filter(pk=placed.vll_id).update(revision=2)
    Order.objects.filter(pk=placed.pk).update(revision=2)
    answer(placed.vll, "z", "verified")
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle) == ("inProgress", "pendingActive")
    answer(placed.vll, "a", "verified")
    assert placed.vll.lifecycle == "active"
