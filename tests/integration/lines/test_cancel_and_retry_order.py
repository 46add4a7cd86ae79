"""Cancelling orders at every stage, and retrying failed orders."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import User
from portal.core import clock
from portal.vll.errors import AlreadyRetried, NotAllowedToOrder, OrderIsOpen, WrongOrderState
from portal.vll.line_revision import content_of
from portal.vll.models import Order, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_resume, order_suspend
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.retry_order import order_retry
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import booked, owners, sums_are_right, vlans
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import activate, answer, left, refuse

pytestmark = pytest.mark.django_db


def cancel(user: User, order_: Order) -> Order:
    return order_cancel(user=user, order=order_, now=clock.now())


def fail(order_: Order) -> None:
    """Let Rhino refuse; both routers then confirm the restored intent."""
    vll = order_.vll
    refuse(vll, "a")
    for side in "az":
        answer(vll, side, "verified" if vll.wanted_present else "removed")
    order_.refresh_from_db()
    assert order_.state == "failed"


@pytest.mark.parametrize("answered", [False, True], ids=["before any answer", "after one"])
def test_new_line_is_cancelled(isp: Isp, alice: User, answered: bool) -> None:
    placed = order(isp, alice)
    if answered:
        answer(placed.vll, "a", "verified")
    assert cancel(alice, placed).state == "pendingCancellation"
    for side in "az":
        answer(placed.vll, side, "removed")
    placed.refresh_from_db()
    assert (placed.state, placed.vll.lifecycle, owners()) == ("cancelled", "cancelled", set())


@pytest.mark.parametrize("answered", [False, True], ids=["before any answer", "after one"])
def test_change_is_undone(isp: Isp, alice: User, vll: Vll, answered: bool) -> None:
    before = content_of(vll)
    placed = modify(alice, vll, a_end={"outer_vlan": 200}, cir_bps=2 * GBIT)
    if answered:
        answer(vll, "a", "verified")
    assert cancel(alice, placed).state == "pendingCancellation"
    vll.refresh_from_db()
    assert (content_of(vll), vll.revision) == (before, 3)
    activate(vll)
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle, owners()) == ("cancelled", "active", {vll.pk})
    assert booked(vll.pk)[0][2] == GBIT
    assert sums_are_right()


def test_moving_end_returns(isp: Isp, alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, a_end={"port": isp.ports["hippo:host-cust2"].pk})
    cancel(alice, placed)
    activate(vll)
    placed.refresh_from_db()
    assert placed.state == "pendingCancellation"
    left(vll, "a", isp.routers["hippo"])
    placed.refresh_from_db()
    assert placed.state == "cancelled"
    assert vlans(vll.pk)[0] == ("a", "rhino:host-cust1", 100)


def test_unfinished_removal_is_rebuilt(alice: User, vll: Vll) -> None:
    removal = order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    assert cancel(alice, removal).state == "pendingCancellation"
    vll.refresh_from_db()
    assert vll.wanted_present
    activate(vll)
    removal.refresh_from_db()
    assert (removal.state, vll.lifecycle, owners()) == ("cancelled", "active", {vll.pk})


def test_finished_or_ending_order_cannot_be_cancelled(isp: Isp, alice: User, vll: Vll) -> None:
    with pytest.raises(WrongOrderState):
        cancel(alice, vll.orders.get())
    failing = modify(alice, vll, cir_bps=2 * GBIT)
    refuse(vll, "a")
    with pytest.raises(WrongOrderState):
        cancel(alice, failing)
    activate(vll)
    changing = modify(alice, vll, cir_bps=3 * GBIT)
    cancel(alice, changing)
    with pytest.raises(WrongOrderState):
        cancel(alice, changing)


def test_refusal_after_the_cancellation_is_no_failure(alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, a_end={"outer_vlan": 200})
    cancel(alice, placed)
    refuse(vll, "a")
    activate(vll)
    placed.refresh_from_db()
    assert (placed.state, placed.failure) == ("cancelled", None)


def test_viewer_can_neither_cancel_nor_retry(isp: Isp, alice: User, bob: User) -> None:
    placed = order(isp, alice)
    with pytest.raises(NotAllowedToOrder):
        cancel(bob, placed)
    fail(placed)
    with pytest.raises(NotAllowedToOrder):
        order_retry(user=bob, order=placed, now=clock.now())


def test_failed_line_is_ordered_again_with_the_same_values(isp: Isp, alice: User) -> None:
    placed = order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer="any"), transport="vxlan6")
    fail(placed)
    again = order_retry(user=alice, order=placed, now=clock.now())
    assert (again.action, again.retry_of_id, again.state) == ("add", placed.pk, "acknowledged")
    assert again.vll_id != placed.vll_id
    vll = again.vll
    assert (vll.description, vll.transport, vll.requested_transport) == ("ZRH-AMS", "vxlan6", "vxlan6")
    assert vll.ends.get(side="a").requested_outer_vlan is None
    activate(vll)
    assert vll.lifecycle == "active"


def test_failed_change_is_ordered_again_and_nothing_else_with_it(isp: Isp, alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, a_end={"outer_vlan": 200})
    fail(placed)
    modify(alice, vll, cir_bps=2 * GBIT)
    activate(vll)
    again = order_retry(user=alice, order=placed, now=clock.now())
    activate(vll)
    again.refresh_from_db()
    assert (again.state, again.retry_of_id) == ("completed", placed.pk)
    assert (vll.ends.get(side="a").outer_vlan, vll.cir_bps) == (200, 2 * GBIT)


def test_failed_suspension_and_resumption_are_ordered_again(alice: User, vll: Vll) -> None:
    suspension = order_suspend(user=alice, vll=vll, now=clock.now())
    fail(suspension)
    order_retry(user=alice, order=suspension, now=clock.now())
    activate(vll)
    assert vll.lifecycle == "suspended"
    resumption = order_resume(user=alice, vll=vll, now=clock.now())
    fail(resumption)
    vll.refresh_from_db()
    assert vll.lifecycle == "suspended"
    again = order_retry(user=alice, order=resumption, now=clock.now())
    activate(vll)
    assert (again.retry_of_id, vll.lifecycle) == (resumption.pk, "active")


def test_failed_cooling_off_is_ordered_again_with_the_same_duration(alice: User, vll: Vll) -> None:
    stopping = order_delete(user=alice, vll=vll, now=clock.now(), cooling_off=timedelta(hours=5))
    fail(stopping)
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.decommission_at) == ("active", None)
    again = order_retry(user=alice, order=stopping, now=clock.now())
    activate(vll)
    assert (again.retry_of_id, vll.lifecycle) == (stopping.pk, "pendingTerminate")
    assert vll.decommission_at == again.ordered_at + timedelta(hours=5)


def test_order_is_retried_once_and_only_after_a_failure(isp: Isp, alice: User, vll: Vll) -> None:
    with pytest.raises(WrongOrderState):
        order_retry(user=alice, order=vll.orders.get(), now=clock.now())
    placed = modify(alice, vll, a_end={"outer_vlan": 200})
    fail(placed)
    again = order_retry(user=alice, order=placed, now=clock.now())
    with pytest.raises(AlreadyRetried) as refusal:
        order_retry(user=alice, order=placed, now=clock.now())
    assert refusal.value.order_id == str(again.pk)
    other = order(isp, alice, a_end=end(isp, "rhino:host-cust2"), z_end=end(isp, "hippo:host-cust2"))
    with pytest.raises(IntegrityError, match="an_order_is_retried_once"), transaction.atomic():
        Order.objects.filter(pk=other.pk).update(retry_of=placed)


def test_cancelled_retry_does_not_count_as_a_retry(isp: Isp, alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, a_end={"outer_vlan": 200})
    fail(placed)
    again = order_retry(user=alice, order=placed, now=clock.now())
    order_cancel(user=alice, order=again, now=clock.now())
    activate(vll)
    second_retry = order_retry(user=alice, order=placed, now=clock.now())
    assert (second_retry.retry_of_id, second_retry.state) == (placed.pk, "acknowledged")


def test_retry_waits_for_the_open_order(alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, a_end={"outer_vlan": 200})
    fail(placed)
    modify(alice, vll, cir_bps=2 * GBIT)
    with pytest.raises(OrderIsOpen):
        order_retry(user=alice, order=placed, now=clock.now())
