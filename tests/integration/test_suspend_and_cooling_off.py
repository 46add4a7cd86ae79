"""Stopping a line, letting it go on, removing it after a cooling-off, and taking that back."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.errors import (
    CoolingOffAlready,
    CoolingOffOutOfRange,
    NotAllowedToOrder,
    OrderIsOpen,
    WrongLifecycle,
)
from portal.vll.models import Order, Vll
from portal.vll.operations import (
    coolings_off_end,
    order_cancel,
    order_delete,
    order_restore,
    order_resume,
    order_retry,
    order_suspend,
)
from provisioning.intent_rows import end_rows
from provisioning.lost_work_sweep import sweep
from tests.integration.isp import Isp
from tests.integration.leases import holders
from tests.integration.router_answers import activate, answer, refuse

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def is_up(isp: Isp) -> bool:
    (row,) = end_rows(isp.routers["rhino"])
    return row.admin_up


def remove(user: User, vll: Vll, cooling_off: timedelta | None = DAY) -> Order:
    placed = order_delete(user=user, vll=vll, now=clock.now(), cooling_off=cooling_off)
    vll.refresh_from_db()
    return placed


def test_suspending_takes_the_access_down_and_is_done_when_both_routers_say_so(
    isp: Isp, alice: User, vll: Vll
) -> None:
    placed = order_suspend(user=alice, vll=vll, now=clock.now())
    assert (placed.action, is_up(isp)) == ("modify", False)
    answer(vll, "a", "verified")
    assert (vll.lifecycle, vll.admin_status) == ("active", "admin-down")
    answer(vll, "z", "verified")
    assert (vll.lifecycle, vll.in_sync) == ("suspended", True)
    assert holders() == {vll.pk}
    order_resume(user=alice, vll=vll, now=clock.now())
    assert is_up(isp)
    activate(vll)
    assert (vll.lifecycle, vll.admin_status) == ("active", "admin-up")


def test_a_router_that_refuses_to_suspend_leaves_the_line_active(isp: Isp, alice: User, vll: Vll) -> None:
    placed = order_suspend(user=alice, vll=vll, now=clock.now())
    refuse(vll, "a")
    assert is_up(isp)
    activate(vll)
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle, vll.admin_status) == ("failed", "active", "admin-up")


def test_only_an_active_line_is_suspended_and_only_a_suspended_one_resumed(alice: User, vll: Vll) -> None:
    with pytest.raises(WrongLifecycle):
        order_resume(user=alice, vll=vll, now=clock.now())
    order_suspend(user=alice, vll=vll, now=clock.now())
    with pytest.raises(OrderIsOpen):
        order_resume(user=alice, vll=vll, now=clock.now())
    activate(vll)
    with pytest.raises(WrongLifecycle):
        order_suspend(user=alice, vll=vll, now=clock.now())


def test_a_viewer_may_neither_suspend_nor_restore(alice: User, bob: User, vll: Vll) -> None:
    with pytest.raises(NotAllowedToOrder):
        order_suspend(user=bob, vll=vll, now=clock.now())
    remove(alice, vll)
    with pytest.raises(NotAllowedToOrder):
        order_restore(user=bob, vll=vll, now=clock.now())


def test_in_the_cooling_off_the_traffic_stands_and_everything_stays_leased(
    isp: Isp, alice: User, vll: Vll
) -> None:
    placed = remove(alice, vll)
    assert (vll.lifecycle, vll.admin_status, vll.wanted_present) == ("pendingTerminate", "admin-down", True)
    assert vll.decommission_at == placed.ordered_at + DAY
    assert not is_up(isp)
    activate(vll)
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle) == ("completed", "pendingTerminate")
    assert holders() == {vll.pk}
    assert coolings_off_end(now=placed.ordered_at + DAY - timedelta(seconds=1)) == 0


def test_when_it_is_over_the_sweeper_orders_the_removal_once(isp: Isp, alice: User, vll: Vll) -> None:
    placed = remove(alice, vll)
    activate(vll)
    over = placed.ordered_at + DAY
    sweep(now=over)
    sweep(now=over)
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.wanted_present) == ("pendingTerminate", False)
    removal = Order.objects.get(vll=vll, action="delete")
    for side in "az":
        answer(vll, side, "removed")
    removal.refresh_from_db()
    assert (removal.state, vll.lifecycle, holders()) == ("completed", "terminated", set())


def test_a_removal_does_not_overtake_the_order_that_stops_the_traffic(alice: User, vll: Vll) -> None:
    placed = remove(alice, vll)
    assert coolings_off_end(now=placed.ordered_at + DAY) == 0
    activate(vll)
    assert coolings_off_end(now=placed.ordered_at + DAY) == 1


@pytest.mark.parametrize("suspended", [False, True])
def test_restored_it_is_again_what_it_was(isp: Isp, alice: User, vll: Vll, suspended: bool) -> None:
    if suspended:
        order_suspend(user=alice, vll=vll, now=clock.now())
        activate(vll)
    remove(alice, vll)
    activate(vll)
    order_restore(user=alice, vll=vll, now=clock.now())
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.decommission_at) == ("pendingTerminate", None)
    assert coolings_off_end(now=clock.now() + 2 * DAY) == 0
    activate(vll)
    assert vll.lifecycle == ("suspended" if suspended else "active")
    assert is_up(isp) is not suspended


def test_restoring_while_the_traffic_is_being_stopped_cancels_that_order(
    isp: Isp, alice: User, vll: Vll
) -> None:
    stopping = remove(alice, vll)
    again = order_restore(user=alice, vll=vll, now=clock.now())
    assert (again.pk, again.state) == (stopping.pk, "pendingCancellation")
    assert is_up(isp)
    activate(vll)
    stopping.refresh_from_db()
    assert (stopping.state, vll.lifecycle, vll.decommission_at) == ("cancelled", "active", None)


def test_a_router_that_refuses_to_stop_keeps_the_line_in_service(alice: User, vll: Vll) -> None:
    stopping = remove(alice, vll)
    refuse(vll, "z")
    activate(vll)
    stopping.refresh_from_db()
    assert (stopping.state, vll.lifecycle, vll.decommission_at) == ("failed", "active", None)


def test_what_is_not_on_its_way_out_cannot_be_restored(alice: User, vll: Vll) -> None:
    with pytest.raises(WrongLifecycle):
        order_restore(user=alice, vll=vll, now=clock.now())
    remove(alice, vll, cooling_off=timedelta(0))
    with pytest.raises(OrderIsOpen):
        order_restore(user=alice, vll=vll, now=clock.now())


def test_a_removal_without_cooling_off_ends_one_that_lasts(alice: User, vll: Vll) -> None:
    remove(alice, vll)
    activate(vll)
    assert remove(alice, vll, cooling_off=timedelta(0)).action == "delete"
    assert not vll.wanted_present


def test_a_removal_that_came_from_a_cooling_off_is_cancelled_into_service(
    isp: Isp, alice: User, vll: Vll
) -> None:
    placed = remove(alice, vll)
    activate(vll)
    coolings_off_end(now=placed.ordered_at + DAY)
    removal = Order.objects.get(action="delete")
    order_cancel(user=alice, order=removal, now=clock.now())
    activate(vll)
    removal.refresh_from_db()
    assert (removal.state, vll.lifecycle, vll.decommission_at) == ("cancelled", "active", None)
    assert is_up(isp)


def test_the_customers_own_cooling_off_counts_where_nothing_is_said(
    alice: User, dairy: Customer, vll: Vll
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(cooling_off_s=3600)
    placed = remove(alice, vll, cooling_off=None)
    assert vll.decommission_at == placed.ordered_at + timedelta(hours=1)


def test_a_cooling_off_lasts_90_days_at_most(alice: User, vll: Vll) -> None:
    with pytest.raises(CoolingOffOutOfRange):
        remove(alice, vll, cooling_off=timedelta(days=90, seconds=1))


def test_the_database_lets_only_a_line_on_its_way_out_cool_off(vll: Vll) -> None:
    with pytest.raises(IntegrityError, match="only_a_vll_on_its_way_out"), transaction.atomic():
        Vll.objects.filter(pk=vll.pk).update(decommission_at=clock.now())


def cooled_off(alice: User, vll: Vll) -> None:
    remove(alice, vll)
    activate(vll)
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.wanted_present) == ("pendingTerminate", True)


@pytest.mark.parametrize("how", ["called off", "failed"])
def test_a_removal_can_be_taken_back_after_a_first_try_that_was_not_carried_through(
    alice: User, vll: Vll, how: str
) -> None:
    cooled_off(alice, vll)
    first = order_restore(user=alice, vll=vll, now=clock.now())
    vll.refresh_from_db()
    if how == "called off":
        order_cancel(user=alice, order=first, now=clock.now())
    else:
        refuse(vll, "a")
    vll.refresh_from_db()
    activate(vll)
    vll.refresh_from_db()
    assert vll.decommission_at is not None, "the cooling-off lasts"
    first.refresh_from_db()
    if how == "called off":
        order_restore(user=alice, vll=vll, now=clock.now())
    else:
        order_retry(user=alice, order=first, now=clock.now())
    vll.refresh_from_db()
    activate(vll)
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.decommission_at) == ("active", None)
    assert coolings_off_end(now=clock.now() + 2 * DAY) == 0


def test_asking_once_more_for_a_cooling_off_removes_nothing(alice: User, vll: Vll) -> None:
    cooled_off(alice, vll)
    until, orders = vll.decommission_at, vll.orders.count()
    for lasts in (DAY, 30 * DAY):
        with pytest.raises(CoolingOffAlready) as refused, transaction.atomic():
            remove(alice, vll, cooling_off=lasts)
        assert refused.value.until == until
    Customer.objects.update(cooling_off_s=86_400)
    with pytest.raises(CoolingOffAlready), transaction.atomic():
        remove(alice, vll, cooling_off=None)
    vll.refresh_from_db()
    assert (vll.wanted_present, vll.decommission_at, vll.orders.count()) == (True, until, orders)
    assert remove(alice, vll, cooling_off=timedelta(0)).action == "delete"
