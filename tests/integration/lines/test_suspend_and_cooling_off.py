"""Suspending and resuming a line, removing it after a cooling-off, and restoring it."""

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
from portal.vll.operations.line_removal import coolings_off_end, order_delete, order_restore
from portal.vll.operations.modify_line import order_resume, order_suspend
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.retry_order import order_retry
from provisioning.intent_rows import router_rows
from provisioning.lost_work_sweep import sweep
from tests.integration.isp import Isp
from tests.integration.leases import owners
from tests.integration.router_answers import activate, answer, refuse

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def is_up(isp: Isp) -> bool:
    (row,) = list(router_rows(isp.routers["rhino"]).ends)
    return bool(row.members["admin_up"])


def remove(user: User, vll: Vll, cooling_off: timedelta | None = DAY) -> Order:
    placed = order_delete(user=user, vll=vll, now=clock.now(), cooling_off=cooling_off)
    vll.refresh_from_db()
    return placed


def test_suspension_takes_the_access_down_and_ends_when_both_routers_confirm(
    isp: Isp, alice: User, vll: Vll
) -> None:
    placed = order_suspend(user=alice, vll=vll, now=clock.now())
    assert (placed.action, is_up(isp)) == ("modify", False)
    answer(vll, "a", "verified")
    assert (vll.lifecycle, vll.admin_status) == ("active", "admin-down")
    answer(vll, "z", "verified")
    assert (vll.lifecycle, vll.in_sync) == ("suspended", True)
    assert owners() == {vll.pk}
    order_resume(user=alice, vll=vll, now=clock.now())
    assert is_up(isp)
    activate(vll)
    assert (vll.lifecycle, vll.admin_status) == ("active", "admin-up")


def test_refused_suspension_leaves_the_line_active(isp: Isp, alice: User, vll: Vll) -> None:
    placed = order_suspend(user=alice, vll=vll, now=clock.now())
    refuse(vll, "a")
    assert is_up(isp)
    activate(vll)
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle, vll.admin_status) == ("failed", "active", "admin-up")


def test_only_active_lines_are_suspended_and_only_suspended_ones_resumed(alice: User, vll: Vll) -> None:
    with pytest.raises(WrongLifecycle):
        order_resume(user=alice, vll=vll, now=clock.now())
    order_suspend(user=alice, vll=vll, now=clock.now())
    with pytest.raises(OrderIsOpen):
        order_resume(user=alice, vll=vll, now=clock.now())
    activate(vll)
    with pytest.raises(WrongLifecycle):
        order_suspend(user=alice, vll=vll, now=clock.now())


def test_viewer_may_neither_suspend_nor_restore(alice: User, bob: User, vll: Vll) -> None:
    with pytest.raises(NotAllowedToOrder):
        order_suspend(user=bob, vll=vll, now=clock.now())
    remove(alice, vll)
    with pytest.raises(NotAllowedToOrder):
        order_restore(user=bob, vll=vll, now=clock.now())


def test_cooling_off_stops_the_traffic_and_keeps_all_leases(isp: Isp, alice: User, vll: Vll) -> None:
    placed = remove(alice, vll)
    assert (vll.lifecycle, vll.admin_status, vll.wanted_present) == ("pendingTerminate", "admin-down", True)
    assert vll.decommission_at == placed.ordered_at + DAY
    assert not is_up(isp)
    activate(vll)
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle) == ("completed", "pendingTerminate")
    assert owners() == {vll.pk}
    assert coolings_off_end(now=placed.ordered_at + DAY - timedelta(seconds=1)) == 0


def test_sweeper_orders_the_removal_once_after_the_cooling_off(isp: Isp, alice: User, vll: Vll) -> None:
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
    assert (removal.state, vll.lifecycle, owners()) == ("completed", "terminated", set())


def test_removal_waits_for_the_order_that_stops_the_traffic(alice: User, vll: Vll) -> None:
    placed = remove(alice, vll)
    assert coolings_off_end(now=placed.ordered_at + DAY) == 0
    activate(vll)
    assert coolings_off_end(now=placed.ordered_at + DAY) == 1


@pytest.mark.parametrize("suspended", [False, True])
def test_restored_line_has_its_previous_state(isp: Isp, alice: User, vll: Vll, suspended: bool) -> None:
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


def test_restoring_cancels_an_order_that_stops_the_traffic(isp: Isp, alice: User, vll: Vll) -> None:
    stopping = remove(alice, vll)
    again = order_restore(user=alice, vll=vll, now=clock.now())
    assert (again.pk, again.state) == (stopping.pk, "pendingCancellation")
    assert is_up(isp)
    activate(vll)
    stopping.refresh_from_db()
    assert (stopping.state, vll.lifecycle, vll.decommission_at) == ("cancelled", "active", None)


def test_refused_stop_keeps_the_line_in_service(alice: User, vll: Vll) -> None:
    stopping = remove(alice, vll)
    refuse(vll, "z")
    activate(vll)
    stopping.refresh_from_db()
    assert (stopping.state, vll.lifecycle, vll.decommission_at) == ("failed", "active", None)


def test_only_a_line_in_cooling_off_can_be_restored(alice: User, vll: Vll) -> None:
    with pytest.raises(WrongLifecycle):
        order_restore(user=alice, vll=vll, now=clock.now())
    remove(alice, vll, cooling_off=timedelta(0))
    with pytest.raises(OrderIsOpen):
        order_restore(user=alice, vll=vll, now=clock.now())


def test_removal_without_cooling_off_ends_a_running_cooling_off(alice: User, vll: Vll) -> None:
    remove(alice, vll)
    activate(vll)
    assert remove(alice, vll, cooling_off=timedelta(0)).action == "delete"
    assert not vll.wanted_present


def test_cancelled_removal_after_a_cooling_off_returns_the_line_to_service(
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


def test_customers_cooling_off_is_the_default(alice: User, dairy: Customer, vll: Vll) -> None:
    Customer.objects.filter(pk=dairy.pk).update(cooling_off_s=3600)
    placed = remove(alice, vll, cooling_off=None)
    assert vll.decommission_at == placed.ordered_at + timedelta(hours=1)


def test_cooling_off_has_at_most_90_days(alice: User, vll: Vll) -> None:
    with pytest.raises(CoolingOffOutOfRange):
        remove(alice, vll, cooling_off=timedelta(days=90, seconds=1))


def test_database_allows_a_cooling_off_only_for_a_line_being_removed(vll: Vll) -> None:
    with pytest.raises(IntegrityError, match="only_a_vll_on_its_way_out"), transaction.atomic():
        Vll.objects.filter(pk=vll.pk).update(decommission_at=clock.now())


def begin_cooling_off(alice: User, vll: Vll) -> None:
    remove(alice, vll)
    activate(vll)
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.wanted_present) == ("pendingTerminate", True)


@pytest.mark.parametrize("first_attempt", ["cancelled", "failed"])
def test_removal_can_be_undone_after_a_failed_or_cancelled_first_attempt(
    alice: User, vll: Vll, first_attempt: str
) -> None:
    begin_cooling_off(alice, vll)
    first = order_restore(user=alice, vll=vll, now=clock.now())
    vll.refresh_from_db()
    if first_attempt == "cancelled":
        order_cancel(user=alice, order=first, now=clock.now())
    else:
        refuse(vll, "a")
    vll.refresh_from_db()
    activate(vll)
    vll.refresh_from_db()
    assert vll.decommission_at is not None, "the cooling-off continues"
    first.refresh_from_db()
    if first_attempt == "cancelled":
        order_restore(user=alice, vll=vll, now=clock.now())
    else:
        order_retry(user=alice, order=first, now=clock.now())
    vll.refresh_from_db()
    activate(vll)
    vll.refresh_from_db()
    assert (vll.lifecycle, vll.decommission_at) == ("active", None)
    assert coolings_off_end(now=clock.now() + 2 * DAY) == 0


def test_second_cooling_off_is_refused_and_changes_nothing(alice: User, vll: Vll) -> None:
    begin_cooling_off(alice, vll)
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
