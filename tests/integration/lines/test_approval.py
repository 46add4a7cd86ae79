"""Orders above a customer's limit: the portal leases everything, sends nothing, and the NOC decides."""

from datetime import timedelta

import pytest

from portal.accounts.models import Customer, User
from portal.allocation.errors import VlanTaken
from portal.core import clock
from portal.inventory.models import BackboneLink, Port
from portal.underlay.errors import PathTooNarrow
from portal.vll.convergence.claims import routers_due
from portal.vll.errors import NotForYouToDecide, WrongOrderState
from portal.vll.models import Order, Vll
from portal.vll.operations.modify_line import order_modify
from portal.vll.operations.order_approval import order_approve, order_reject
from portal.vll.operations.order_endings import order_cancel
from portal.vll.operations.order_progress import orders_overdue_alarm
from provisioning.intent_rows import router_rows, unconfirmed_keys
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import owners, sums_are_right
from tests.integration.orders import order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limit(dairy: Customer) -> None:
    """Alpine Dairy orders up to 1 Gbit/s without approval."""
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=GBIT)
    dairy.refresh_from_db()


@pytest.fixture
def pending(isp: Isp, alice: User) -> Order:
    return order(isp, alice, cir_bps=2 * GBIT)


def approve(user: User, pending: Order) -> Order:
    return order_approve(user=user, order=pending, now=clock.now())


def reject(user: User, pending: Order) -> Order:
    return order_reject(user=user, order=pending, reason="No capacity before May", now=clock.now())


def test_order_up_to_the_limit_needs_no_approval(isp: Isp, alice: User) -> None:
    assert order(isp, alice, cir_bps=GBIT).state == "acknowledged"


def test_order_of_the_noc_needs_no_approval(isp: Isp, nora: User) -> None:
    assert order(isp, nora, cir_bps=2 * GBIT).state == "acknowledged"


def test_order_pending_approval_leases_and_sends_nothing(isp: Isp, alice: User, pending: Order) -> None:
    assert (pending.state, pending.vll.lifecycle) == ("held", "pendingActive")
    assert not requested()
    assert routers_due(now=clock.now()) == []
    rhino = isp.routers["rhino"]
    assert (list(router_rows(rhino).ends), unconfirmed_keys(rhino)) == ([], frozenset())
    with pytest.raises(VlanTaken):
        order(isp, alice, cir_bps=1)


def test_approved_order_continues_and_its_deadline_starts_then(isp: Isp, nora: User, pending: Order) -> None:
    later = clock.now()
    Order.objects.update(ordered_at=later - timedelta(hours=2))
    order_approve(user=nora, order=pending, now=later)
    assert len(list(router_rows(isp.routers["rhino"]).ends)) == 1
    assert orders_overdue_alarm(now=later + timedelta(seconds=60)) == 0
    assert orders_overdue_alarm(now=later + timedelta(seconds=119)) == 1
    activate(pending.vll)
    pending.refresh_from_db()
    assert (pending.state, pending.vll.lifecycle) == ("completed", "active")


def test_rejected_order_releases_everything_and_has_a_reason(
    isp: Isp, alice: User, nora: User, pending: Order
) -> None:
    rejected = reject(nora, pending)
    assert (rejected.state, rejected.failure["message"]) == ("rejected", "No capacity before May")
    pending.vll.refresh_from_db()
    assert (pending.vll.lifecycle, owners()) == ("cancelled", set())
    assert sums_are_right()
    order(isp, alice, cir_bps=1)


def test_customer_cancels_an_order_pending_approval_immediately(
    isp: Isp, alice: User, pending: Order
) -> None:
    cancelled = order_cancel(user=alice, order=pending, now=clock.now())
    pending.vll.refresh_from_db()
    assert (cancelled.state, pending.vll.lifecycle, owners()) == ("cancelled", "cancelled", set())


def test_only_the_noc_decides(alice: User, pending: Order) -> None:
    for decide in (approve, reject):
        with pytest.raises(NotForYouToDecide):
            decide(alice, pending)


def test_order_is_decided_once(alice: User, nora: User, pending: Order) -> None:
    approve(nora, pending)
    for decide in (approve, reject):
        with pytest.raises(WrongOrderState):
            decide(nora, pending)


def test_order_that_the_underlay_no_longer_carries_cannot_be_approved(nora: User, pending: Order) -> None:
    BackboneLink.objects.update(a_ip_mtu=1500, z_ip_mtu=1500)
    with pytest.raises(PathTooNarrow):
        approve(nora, pending)
    pending.refresh_from_db()
    assert pending.state == "held"


class TestAChangePendingApproval:
    """A change from 1 Gbit/s to 2."""

    @pytest.fixture
    def vll(self, isp: Isp, alice: User) -> Vll:
        placed = order(isp, alice).vll
        activate(placed)
        return placed

    @pytest.fixture
    def change(self, alice: User, vll: Vll) -> Order:
        changes = {"cir_bps": 2 * GBIT, "a_end": {"outer_vlan": 200}}
        return order_modify(user=alice, vll=vll, changes=changes, now=clock.now())

    def test_line_stays_unchanged_until_approval(self, isp: Isp, nora: User, vll: Vll, change: Order) -> None:
        vll.refresh_from_db()
        assert (change.state, vll.revision, vll.cir_bps, vll.in_sync) == ("held", 1, GBIT, True)
        assert owners() == {vll.pk, change.pk}
        answer(vll, "a", "verified")
        change.refresh_from_db()
        assert change.state == "held"
        approve(nora, change)
        activate(vll)
        change.refresh_from_db()
        assert (change.state, vll.cir_bps, owners()) == ("completed", 2 * GBIT, {vll.pk})

    def test_rejected_or_cancelled_change_releases_its_leases(
        self, isp: Isp, alice: User, nora: User, vll: Vll, change: Order
    ) -> None:
        reject(nora, change)
        assert owners() == {vll.pk}
        again = order_modify(user=alice, vll=vll, changes={"cir_bps": 3 * GBIT}, now=clock.now())
        order_cancel(user=alice, order=again, now=clock.now())
        vll.refresh_from_db()
        assert (vll.lifecycle, owners()) == ("active", {vll.pk})
        assert Port.objects.get(pk=isp.ports["rhino:host-cust1"].pk).booked_bps == GBIT

    def test_change_without_more_bandwidth_needs_no_approval(
        self, isp: Isp, alice: User, nora: User, vll: Vll, change: Order
    ) -> None:
        approve(nora, change)
        activate(vll)
        less = order_modify(user=alice, vll=vll, changes={"a_end": {"outer_vlan": 7}}, now=clock.now())
        assert less.state == "acknowledged"
