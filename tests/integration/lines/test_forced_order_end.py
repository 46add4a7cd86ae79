"""Orders that routers block: the NOC retries them, ends them by force, or declares a router dead.

The portal releases no resource that a router may still use before the router has confirmed its removal. This
is true for dead routers too.
"""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Q

from portal.accounts.models import Customer, User
from portal.allocation.errors import VlanTaken
from portal.allocation.models import GreKeyLease, GrePairLease, VniLease
from portal.core import clock
from portal.events.models import Event
from portal.inventory.errors import InUse
from portal.inventory.models import BackboneLink, Port, Router
from portal.inventory.operations import port_remove, router_remove
from portal.vll.convergence.claims import routers_due
from portal.vll.errors import NotForYouToDecide, NotForYouToForce, RouterIsDead, WrongOrderState
from portal.vll.models import Order, RouterConvergence, Vll, VllTombstone
from portal.vll.operations.line_removal import dead_routers_settle, order_delete
from portal.vll.operations.order_endings import order_cancel, order_force_end, order_force_retry
from portal.vll.operations.retry_order import order_retry
from portal.vll.operations.tombstones import tombstones_of_retired_routers_settle
from portal.vll.router_operations.actions import (
    router_declare_alive,
    router_declare_dead,
    router_maintenance_set,
)
from provisioning.intent_document import RouterIntent
from provisioning.intent_generations import router_intent
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import booked, owners, sums_are_right, vlans
from tests.integration.orders import end, modify, order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate, answer, left, refuse

pytestmark = pytest.mark.django_db
REASON = "Rhino burnt down"


def force_end(user: User, placed: Order) -> Order:
    return order_force_end(user=user, order=placed, reason=REASON, now=clock.now())


def intent(isp: Isp, router: str) -> RouterIntent:
    return router_intent(Router.objects.get(name=router), generation=1)


class TestRefusedUndo:
    """A change to VLAN 200 at Rhino and to 2 Gbit/s. Hippo refuses it, and Rhino refuses its undoing."""

    @pytest.fixture
    def stuck(self, alice: User, vll: Vll) -> Order:
        placed = modify(alice, vll, a_end={"outer_vlan": 200}, cir_bps=2 * GBIT)
        refuse(vll, "z")
        answer(vll, "z", "verified")
        refuse(vll, "a")
        placed.refresh_from_db()
        assert (placed.state, placed.failure["router"]) == ("inProgress", "hippo")
        return placed

    def test_order_is_ended_with_a_reason_and_releases_nothing(
        self, isp: Isp, alice: User, nina: User, vll: Vll, stuck: Order
    ) -> None:
        with pytest.raises(WrongOrderState):
            order_cancel(user=alice, order=stuck, now=clock.now())
        ended = force_end(nina, stuck)
        assert (ended.state, ended.failure["router"]) == ("failed", "hippo")
        assert (ended.forced["by"], ended.forced["reason"]) == ("nina", REASON)
        vll.refresh_from_db()
        assert (vll.lifecycle, vll.in_sync) == ("active", False)
        assert vlans(stuck.pk) == [("a", "rhino:host-cust1", 200)]
        with pytest.raises(VlanTaken):
            order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer=200))
        assert sums_are_right()

    def test_late_confirmation_of_the_routers_releases_the_rest(
        self, nina: User, vll: Vll, stuck: Order
    ) -> None:
        force_end(nina, stuck)
        answer(vll, "a", "verified")
        assert (vll.in_sync, owners()) == (True, {vll.pk})
        assert booked(vll.pk) == [("a", "rhino:host-cust1", GBIT), ("z", "hippo:host-cust1", GBIT)]
        assert sums_are_right()

    def test_next_change_of_the_line_settles_both(
        self, alice: User, nina: User, vll: Vll, stuck: Order
    ) -> None:
        force_end(nina, stuck)
        again = modify(alice, vll, a_end={"outer_vlan": 300})
        assert vlans(stuck.pk) != []
        answer(vll, "a", "verified")
        assert (vlans(stuck.pk), booked(stuck.pk)) == ([], [])
        answer(vll, "z", "verified")
        again.refresh_from_db()
        assert (again.state, owners()) == ("completed", {vll.pk})
        assert vlans(vll.pk)[0] == ("a", "rhino:host-cust1", 300)
        assert sums_are_right()

    def test_removal_of_the_line_leaves_nothing(
        self, alice: User, nina: User, vll: Vll, stuck: Order
    ) -> None:
        force_end(nina, stuck)
        order_delete(user=alice, vll=vll, now=clock.now())
        answer(vll, "z", "removed")
        assert vlans(stuck.pk) != []
        answer(vll, "a", "removed")
        assert (vll.lifecycle, owners(), sums_are_right()) == ("terminated", set(), True)


def test_undone_move_keeps_the_far_port_until_its_router_confirmed(
    isp: Isp, alice: User, nina: User, vll: Vll
) -> None:
    placed = modify(alice, vll, a_end={"port": isp.ports["hippo:host-cust2"].pk})
    refuse(vll, "z")
    activate(vll)
    placed.refresh_from_db()
    # The end is on Rhino again and verified there, but Hippo has not confirmed that it removed the end.
    assert placed.state == "inProgress"
    force_end(nina, placed)
    answer(vll, "a", "verified")
    assert vlans(placed.pk) == [("a", "hippo:host-cust2", 100)]
    left(vll, "a", isp.routers["hippo"])
    assert (owners(), sums_are_right()) == ({vll.pk}, True)


@pytest.mark.parametrize("action", ["add", "cancelled add", "delete"])
def test_refused_removal_ends_and_its_leases_wait(isp: Isp, alice: User, nina: User, action: str) -> None:
    placed = order(isp, alice)
    vll = placed.vll
    if action == "add":
        refuse(vll, "a")
    elif action == "cancelled add":
        order_cancel(user=alice, order=placed, now=clock.now())
    else:
        activate(vll)
        placed = order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "z", "removed")
    answer(vll, "a", "failed", permanent=True, reason={"code": "vpp_refused", "message": "…", "retval": -30})
    ended = force_end(nina, placed)
    assert ended.state == ("cancelled" if action == "cancelled add" else "failed")
    vll.refresh_from_db()
    before = "pendingTerminate" if action == "delete" else "pendingActive"
    assert (vll.lifecycle, owners()) == (before, {vll.pk})
    assert [key.vll for key in intent(isp, "rhino").removed] == [vll.pk]
    if action == "delete":
        with pytest.raises(WrongOrderState):
            order_retry(user=alice, order=ended, now=clock.now())
    answer(vll, "a", "removed")
    after = "terminated" if action == "delete" else "cancelled"
    assert (vll.lifecycle, owners(), sums_are_right()) == (after, set(), True)


def test_cancelled_and_refused_removal_is_ended_and_repaired_later(alice: User, nina: User, vll: Vll) -> None:
    removal = order_delete(user=alice, vll=vll, now=clock.now())
    answer(vll, "a", "removed")
    order_cancel(user=alice, order=removal, now=clock.now())
    refuse(vll, "a")
    assert force_end(nina, removal).state == "cancelled"
    assert Vll.objects.get(pk=vll.pk).lifecycle == "pendingTerminate"
    activate(vll)
    assert (vll.lifecycle, vll.in_sync, owners()) == ("active", True, {vll.pk})


class TestPreconditions:
    def test_only_noc_admins_end_and_only_the_noc_retries(self, isp: Isp, alice: User, nora: User) -> None:
        placed = order(isp, alice)
        refuse(placed.vll, "a")
        for user in (alice, nora):
            with pytest.raises(NotForYouToForce):
                force_end(user, placed)
        with pytest.raises(NotForYouToDecide):
            order_force_retry(user=alice, order=placed, now=clock.now())

    def test_order_that_can_succeed_must_be_cancelled_first(self, isp: Isp, alice: User, nina: User) -> None:
        placed = order(isp, alice)
        with pytest.raises(WrongOrderState):
            force_end(nina, placed)
        order_cancel(user=alice, order=placed, now=clock.now())
        assert force_end(nina, placed).state == "cancelled"
        with pytest.raises(WrongOrderState):
            force_end(nina, placed)

    def test_order_pending_approval_is_rejected_and_not_forced(
        self, isp: Isp, alice: User, nina: User, dairy: Customer
    ) -> None:
        Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
        pending = order(isp, alice)
        for force in (
            force_end,
            lambda user, placed: order_force_retry(user=user, order=placed, now=clock.now()),
        ):
            with pytest.raises(WrongOrderState):
                force(nina, pending)

    def test_retry_ends_the_pauses_of_every_router_of_the_order(
        self, isp: Isp, alice: User, nora: User, vll: Vll
    ) -> None:
        placed = modify(alice, vll, a_end={"port": isp.ports["hippo:host-cust2"].pk})
        for router in Router.objects.filter(name__in=["rhino", "hippo"]):
            RouterConvergence.objects.update_or_create(
                router=router, defaults={"failures": 9, "retry_at": clock.now()}
            )
        forget_requests()
        order_force_retry(user=nora, order=placed, now=clock.now())
        notified = {args[0] for _, args in requested("provisioning.converge_router")}
        assert notified == {isp.routers["rhino"].pk, isp.routers["hippo"].pk}
        assert set(RouterConvergence.objects.values_list("failures", "retry_at", "wanted", "answered")) == {
            (0, None, 1, 0)
        }
        assert Event.objects.get(kind="order.retry_forced").actor == "nora"

    def test_database_refuses_to_force_a_succeeded_order(self, isp: Isp, alice: User) -> None:
        placed = order(isp, alice)
        with pytest.raises(IntegrityError, match="ended_ill"), transaction.atomic():
            Order.objects.filter(pk=placed.pk).update(forced={"by": "eve"})


class TestDeadRouter:
    def declare(self, user: User, router: str = "rhino") -> None:
        found = Router.objects.get(name=router)
        router_declare_dead(router=found, user=user, now=clock.now(), reason=REASON)

    def test_only_a_noc_admin_declares_a_router_dead_and_it_is_recorded(
        self, isp: Isp, nora: User, nina: User
    ) -> None:
        with pytest.raises(NotForYouToForce):
            self.declare(nora)
        self.declare(nina)
        rhino = Router.objects.get(name="rhino")
        assert rhino.dead_since is not None
        assert rhino.maintenance_since is not None
        event = Event.objects.get(kind="router.declared_dead")
        assert (event.actor, event.data["reason"]) == ("nina", REASON)
        with pytest.raises(RouterIsDead):
            router_maintenance_set(router=rhino, on=False, user=nina, now=clock.now())

    def test_removal_waits_only_for_routers_that_are_not_dead(
        self, isp: Isp, alice: User, nina: User, vll: Vll
    ) -> None:
        removal = order_delete(user=alice, vll=vll, now=clock.now())
        self.declare(nina)
        assert dead_routers_settle(now=clock.now()) == 0
        assert owners() == {vll.pk}
        answer(vll, "z", "removed")
        assert dead_routers_settle(now=clock.now()) == 1
        assert dead_routers_settle(now=clock.now()) == 0
        vll.refresh_from_db()
        removal.refresh_from_db()
        assert (removal.state, vll.lifecycle) == ("completed", "terminated")
        (tombstone,) = VllTombstone.objects.all()
        assert owners() == {tombstone.leases}
        assert booked(tombstone.leases) == [("a", "rhino:host-cust1", GBIT)]
        assert vlans(tombstone.leases) == [("a", "rhino:host-cust1", 100)]
        answer(vll, "a", "removed")
        assert (owners(), sums_are_right()) == (set(), True)

    def test_ports_of_a_dead_router_can_be_retired(self, alice: User, nina: User, vll: Vll) -> None:
        order_delete(user=alice, vll=vll, now=clock.now())
        answer(vll, "z", "removed")
        port = vll.ends.get(side="a").port
        with pytest.raises(InUse):
            port_remove(port=port, user=nina, now=clock.now())
        self.declare(nina)
        dead_routers_settle(now=clock.now())
        port_remove(port=port, user=nina, now=clock.now())
        port.refresh_from_db()
        assert (port.retired_at is not None, port.booked_bps) == (True, 0)
        answer(vll, "a", "removed")
        assert (owners(), sums_are_right()) == (set(), True)

    @pytest.mark.parametrize("transport", ["vxlan4", "gre4", "l2xc"])
    @pytest.mark.parametrize("by", ["this release", "the previous release"])
    def test_retired_router_has_no_leases_of_lines(
        self, isp: Isp, alice: User, nina: User, transport: str, by: str
    ) -> None:
        ends = {"z_end": end(isp, "rhino:host-cust2")} if transport == "l2xc" else {}
        vll = order(isp, alice, transport=transport, **ends).vll
        activate(vll)
        order_delete(user=alice, vll=vll, now=clock.now())
        if transport != "l2xc":
            answer(vll, "z", "removed")
        self.declare(nina)
        dead_routers_settle(now=clock.now())
        rhino = Router.objects.get(name="rhino")
        BackboneLink.objects.filter(Q(a_router=rhino) | Q(z_router=rhino)).delete()
        for port in Port.objects.filter(router=rhino):
            port_remove(port=port, user=nina, now=clock.now())
        assert VllTombstone.objects.exists()
        if by == "this release":
            router_remove(router=rhino, user=nina, now=clock.now())
            assert Event.objects.get(kind="router.retired").data["lines"] == [str(vll)]
        else:
            without_address = {"agent_url": "", "loopback4": None, "loopback6": None}
            Router.objects.filter(pk=rhino.pk).update(retired_at=clock.now(), **without_address)
            assert tombstones_of_retired_routers_settle(now=clock.now()) > 0
            assert tombstones_of_retired_routers_settle(now=clock.now()) == 0
        assert not VllTombstone.objects.exists()
        assert (owners(), sums_are_right()) == (set(), True)
        # The tunnel stays unavailable until its cool-down is over; after that it can be leased.
        for leases in (VniLease, GreKeyLease, GrePairLease):
            assert not leases.objects.filter(free_at=None).exists()

    def test_living_router_with_a_possible_line_is_not_removed(
        self, isp: Isp, alice: User, nina: User, vll: Vll
    ) -> None:
        self.declare(nina)
        order_delete(user=alice, vll=vll, now=clock.now())
        answer(vll, "z", "removed")
        dead_routers_settle(now=clock.now())
        rhino = Router.objects.get(name="rhino")
        BackboneLink.objects.filter(Q(a_router=rhino) | Q(z_router=rhino)).delete()
        for port in Port.objects.filter(router=rhino):
            port_remove(port=port, user=nina, now=clock.now())
        router_declare_alive(router=rhino, user=nina, now=clock.now())
        with pytest.raises(InUse) as refused:
            router_remove(router=rhino, user=nina, now=clock.now())
        assert f"line {vll}" in str(vars(refused.value))
        assert VllTombstone.objects.count() == 1

    def test_vni_of_a_dead_router_stays_quarantined_until_it_confirms_the_removal(
        self, isp: Isp, alice: User, nina: User, vll: Vll
    ) -> None:
        order_delete(user=alice, vll=vll, now=clock.now())
        answer(vll, "z", "removed")
        self.declare(nina)
        dead_routers_settle(now=clock.now())
        lease = VniLease.objects.get(vni=vll.vni)
        assert (lease.released_at is not None, lease.free_at) == (True, None)
        # The returned router gets the removal with exactly the ordered revision.
        assert [(key.vll, key.side) for key in intent(isp, "rhino").removed] == [(vll.pk, "a")]
        assert isp.routers["rhino"].pk in routers_due(now=clock.now())
        answer(vll, "a", "removed")
        assert VniLease.objects.get(vni=vll.vni).free_at is not None
        assert not VllTombstone.objects.exists()
        assert intent(isp, "rhino").removed == ()
        assert vll.lifecycle == "terminated"

    def test_unanswered_add_can_be_cancelled(self, isp: Isp, alice: User, nina: User) -> None:
        placed = order(isp, alice)
        order_cancel(user=alice, order=placed, now=clock.now())
        self.declare(nina)
        answer(placed.vll, "z", "removed")
        dead_routers_settle(now=clock.now())
        placed.refresh_from_db()
        assert (placed.state, placed.vll.lifecycle) == ("cancelled", "cancelled")

    def test_two_dead_silent_routers_do_not_block_a_removal(self, alice: User, nina: User, vll: Vll) -> None:
        removal = order_delete(user=alice, vll=vll, now=clock.now())
        for router in ("rhino", "hippo"):
            self.declare(nina, router)
        assert dead_routers_settle(now=clock.now()) == 1
        removal.refresh_from_db()
        assert removal.state == "completed"
        answer(vll, "a", "removed")
        assert VniLease.objects.get(vni=vll.vni).free_at is None
        answer(vll, "z", "removed")
        assert VniLease.objects.get(vni=vll.vni).free_at is not None

    def test_lines_in_service_and_remains_of_moved_ends_stay_unchanged(
        self, isp: Isp, alice: User, nina: User, vll: Vll
    ) -> None:
        modify(alice, vll, a_end={"port": isp.ports["hippo:host-cust2"].pk}, transport="l2xc")
        activate(vll)
        assert Port.objects.get(pk=isp.ports["rhino:host-cust1"].pk).booked_bps == GBIT
        self.declare(nina)
        assert dead_routers_settle(now=clock.now()) == 0
        tombstone = VllTombstone.objects.get()
        assert booked(tombstone.leases) == [("a", "rhino:host-cust1", GBIT)]
        assert VniLease.objects.get().free_at is None
        vll.refresh_from_db()
        assert vll.lifecycle == "active"
        assert sums_are_right()

    @pytest.fixture
    def forced(self, alice: User, nina: User, vll: Vll) -> Order:
        """Return a cancelled and ended change to 2 Gbit/s and to VLAN 200 at Rhino, which never answers."""
        placed = modify(alice, vll, a_end={"outer_vlan": 200}, cir_bps=2 * GBIT)
        order_cancel(user=alice, order=placed, now=clock.now())
        answer(vll, "z", "verified")
        self.declare(nina)
        force_end(nina, placed)
        return placed

    def test_ended_change_releases_its_resources_of_living_routers(self, vll: Vll, forced: Order) -> None:
        assert booked(forced.pk) == [("a", "rhino:host-cust1", GBIT)]
        assert vlans(forced.pk) == [("a", "rhino:host-cust1", 200)]
        assert booked(vll.pk) == [("a", "rhino:host-cust1", GBIT), ("z", "hippo:host-cust1", GBIT)]
        assert vlans(vll.pk) == [("a", "rhino:host-cust1", 100), ("z", "hippo:host-cust1", 100)]
        assert sums_are_right()

    def test_removal_of_the_line_keeps_only_resources_of_the_dead_router(
        self, alice: User, vll: Vll, forced: Order
    ) -> None:
        order_delete(user=alice, vll=vll, now=clock.now())
        answer(vll, "z", "removed")
        assert dead_routers_settle(now=clock.now()) == 1
        assert booked(forced.pk) == [("a", "rhino:host-cust1", GBIT)]
        assert Port.objects.get(pk=vll.ends.get(side="z").port_id).booked_bps == 0
        answer(vll, "a", "removed")
        assert (owners(), sums_are_right()) == (set(), True)

    def test_moved_end_keeps_only_resources_of_the_dead_router(
        self, isp: Isp, alice: User, vll: Vll, forced: Order
    ) -> None:
        modify(alice, vll, a_end={"port": isp.ports["hippo:host-cust2"].pk}, transport="l2xc")
        activate(vll)
        assert booked(forced.pk) == [("a", "rhino:host-cust1", GBIT)]
        assert vlans(forced.pk) == [("a", "rhino:host-cust1", 200)]
        assert booked(vll.pk) == [("a", "hippo:host-cust2", GBIT), ("z", "hippo:host-cust1", GBIT)]
        vni = forced.before["vni"]
        assert VniLease.objects.get(vni=vni).free_at is None
        left(vll, "a", isp.routers["rhino"])
        assert VniLease.objects.get(vni=vni).free_at is not None
        assert (owners(), sums_are_right()) == ({vll.pk}, True)

    def test_removals_wait_for_a_router_that_is_declared_alive_again(
        self, isp: Isp, alice: User, nina: User, vll: Vll
    ) -> None:
        self.declare(nina)
        router_declare_alive(router=isp.routers["rhino"], user=nina, now=clock.now())
        order_delete(user=alice, vll=vll, now=clock.now())
        answer(vll, "z", "removed")
        assert dead_routers_settle(now=clock.now()) == 0
        assert Event.objects.filter(kind="router.declared_alive", actor="nina").exists()


class TestApi:
    def test_api_forces_for_users_with_the_right(self, isp: Isp, alice: User, nora: User, nina: User) -> None:
        placed = order(isp, alice)
        refuse(placed.vll, "a")
        url, body = f"/api/v1/orders/{placed.pk}", {"reason": REASON}
        assert client(alice).post(f"{url}/force-end", body, format="json").status_code == 403
        assert client(nora).post(f"{url}/force-end", body, format="json").status_code == 403
        assert client(nora).post(f"{url}/force-retry").status_code == 202
        assert client(nina).post(f"{url}/force-end", {}, format="json").status_code == 422
        response = client(nina).post(f"{url}/force-end", body, format="json")
        assert (response.status_code, response.json()["order"]["state"]) == (202, "failed")
        assert client(nina).post(f"{url}/force-end", body, format="json").status_code == 409
        history = client(nina).get(f"/api/v1/vlls/{placed.vll_id}/history").json()["results"]
        forced = next(each for each in history if (each["after"] or {}).get("forced"))
        assert (forced["by"]["username"], forced["after"]["forced"]["reason"]) == ("nina", REASON)

    def test_api_declares_a_router_dead_with_a_reason(self, isp: Isp, nora: User, nina: User) -> None:
        url = f"/api/v1/routers/{isp.routers['rhino'].pk}"
        dead = {"do": "declare-dead", "reason": REASON}
        assert client(nora).post(f"{url}/actions", dead, format="json").status_code == 403
        assert client(nina).post(f"{url}/actions", {"do": "declare-dead"}, format="json").status_code == 422
        assert client(nina).post(f"{url}/actions", dead, format="json").json()["dead_since"]
        history = client(nina).get(f"{url}/history").json()["results"]
        assert "dead_since" in history[0]["after"]
        alive = client(nina).post(f"{url}/actions", {"do": "declare-alive"}, format="json")
        assert alive.json()["dead_since"] is None
