"""Two users act at the same time, on real connections: one succeeds, the other is refused, nothing is
left.
"""

import pytest

from portal.accounts.models import Customer, User
from portal.allocation.errors import VlanTaken
from portal.core import clock
from portal.core.errors import DomainError
from portal.vll.errors import OrderIsOpen, ReservationUnknown, StaleRevision, WrongOrderState
from portal.vll.models import Order, Reservation, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_approval import order_approve
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.reservations import reservation_make, reservations_expire
from portal.vll.operations.retry_order import order_retry
from tests.integration.allocation.test_allocation_races import at_once
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import owners, sums_are_right
from tests.integration.orders import end, order
from tests.integration.router_answers import answer, refuse

pytestmark = pytest.mark.django_db(transaction=True)


def refused(results: list[object]) -> set[type]:
    assert all(isinstance(r, DomainError) for r in results if isinstance(r, Exception)), results
    return {type(r) for r in results if isinstance(r, DomainError)}


def winners(results: list[object]) -> list[object]:
    return [r for r in results if not isinstance(r, Exception)]


def test_one_of_16_changes_for_the_same_revision_is_accepted(isp: Isp, alice: User, vll: Vll) -> None:
    def change(number: int) -> Order:
        changes = {"a_end": {"outer_vlan": 200 + number}, "cir_bps": GBIT + number}
        return order_modify(user=alice, vll=vll, changes=changes, now=clock.now(), expected_revision=1)

    results = at_once(16, change)
    (won,) = winners(results)
    assert refused(results) <= {OrderIsOpen, StaleRevision}
    assert owners() == {vll.pk, won.pk}  # type: ignore[attr-defined]
    assert sums_are_right()


def test_concurrent_change_and_removal_never_both_succeed(isp: Isp, alice: User, vll: Vll) -> None:
    def act(number: int) -> Order:
        if number % 2:
            return order_delete(user=alice, vll=vll, now=clock.now())
        changes = {"cir_bps": 2 * GBIT}
        return order_modify(user=alice, vll=vll, changes=changes, now=clock.now())

    results = at_once(8, act)
    assert len(winners(results)) == 1
    assert Order.objects.filter(vll=vll, state="acknowledged").count() == 1


@pytest.mark.parametrize("round_", range(4))
def test_order_pending_approval_is_approved_or_cancelled_but_not_both(
    isp: Isp, alice: User, nora: User, dairy: Customer, round_: int
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    pending = order(isp, alice)

    def act(number: int) -> str:
        if (number + round_) % 2:
            return order_approve(user=nora, order=pending, now=clock.now()).state
        return order_cancel(user=alice, order=pending, now=clock.now()).state

    results = at_once(2, act)
    pending.refresh_from_db()
    # After an approval, the order in progress may still be cancelled.
    if sorted(map(str, winners(results))) == ["inProgress", "pendingCancellation"]:
        assert pending.state == "pendingCancellation"
    else:
        assert winners(results) == [pending.state]
        assert refused(results) == {WrongOrderState}
    assert owners() == (set() if pending.state == "cancelled" else {pending.vll_id})


def test_one_of_many_retries_of_a_failed_order_succeeds(isp: Isp, alice: User) -> None:
    placed = order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer="any"))
    refuse(placed.vll, "a")
    for side in "az":
        answer(placed.vll, side, "removed")
    results = at_once(8, lambda _n: order_retry(user=alice, order=placed, now=clock.now()))
    assert len(winners(results)) == 1
    assert Vll.objects.count() == 2


def test_reserved_resources_stay_reserved_for_their_order(isp: Isp, alice: User) -> None:
    pending = reservation_make(
        user=alice,
        a_end=end(isp, "rhino:host-cust1"),
        z_end=end(isp, "hippo:host-cust1"),
        cir_bps=GBIT,
        now=clock.now(),
    )

    def act(number: int) -> object:
        return order(isp, alice, reservation=pending.pk if number == 7 else None).vll_id

    results = at_once(16, act)
    assert winners(results) == [results[7]]
    assert refused(results) == {VlanTaken}


def test_reservation_that_expires_while_it_is_ordered_is_either_used_or_freed(isp: Isp, alice: User) -> None:
    made = reservation_make(
        user=alice,
        a_end=end(isp, "rhino:host-cust1"),
        z_end=end(isp, "hippo:host-cust1"),
        cir_bps=GBIT,
        now=clock.now(),
    )

    def act(number: int) -> object:
        if number:
            return reservations_expire(now=made.expires_at)
        return order(isp, alice, reservation=made.pk).vll_id

    results = at_once(4, act)
    assert refused(results) <= {ReservationUnknown}
    assert not Reservation.objects.exists()
    assert owners() == set(Vll.objects.values_list("pk", flat=True))
    assert sums_are_right()


def test_64_concurrent_reservations_are_limited_to_five(isp: Isp, alice: User) -> None:
    def act(number: int) -> object:
        ends = [end(isp, port, outer=number + 1) for port in ("rhino:host-cust1", "hippo:host-cust1")]
        if number % 2:
            ends.reverse()
        return reservation_make(user=alice, a_end=ends[0], z_end=ends[1], cir_bps=1, now=clock.now()).pk

    results = at_once(32, act)
    assert len(winners(results)) == 5
    assert Reservation.objects.count() == 5
