"""Changing a line: old and new values coexist until both routers confirm; a refusal restores the old."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from portal.accounts.models import Customer, User
from portal.allocation.errors import PortFull, VlanTaken
from portal.allocation.models import GrePairLease, VniLease
from portal.core import clock
from portal.inventory.models import BackboneLink, Port
from portal.underlay.errors import PathTooNarrow
from portal.vll import line_revision
from portal.vll.convergence.claims import routers_due
from portal.vll.convergence.requests import FIRST_PAUSE
from portal.vll.errors import (
    NotAllowedToOrder,
    NothingToChange,
    OrderIsOpen,
    PortOfAnotherCustomer,
    StaleRevision,
    StillBeingRemoved,
    WrongLifecycle,
)
from portal.vll.line_revision import LineRevision, content_of, differences_of
from portal.vll.models import Order, RouterConvergence, Vll, VllTombstone
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_modify
from provisioning.intent_generations import router_intent
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import booked, owners, sums_are_right, vlans
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import CONFLICT, activate, answer, left, refuse

pytestmark = pytest.mark.django_db


def document(isp: Isp, router: str) -> dict[str, Any]:
    return json.loads(router_intent(isp.routers[router], generation=1).document())


def test_both_vlans_are_leased_until_both_routers_have_the_new_one(isp: Isp, alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, a_end={"outer_vlan": 200})
    assert (placed.action, placed.state, placed.revision, vll.revision) == ("modify", "acknowledged", 2, 2)
    assert (vll.lifecycle, vll.in_sync) == ("active", False)
    assert vlans(vll.pk) == [("a", "rhino:host-cust1", 100), ("z", "hippo:host-cust1", 100)]
    assert vlans(placed.pk) == [("a", "rhino:host-cust1", 200)]
    (present,) = document(isp, "rhino")["present"]
    assert (present["revision"], present["access"]["outer_vlan"]) == (2, 200)
    answer(vll, "a", "verified")
    assert vlans(vll.pk)[0][2] == 100
    answer(vll, "z", "verified")
    placed.refresh_from_db()
    assert (placed.state, vll.in_sync) == ("completed", True)
    assert vlans(vll.pk) == [("a", "rhino:host-cust1", 200), ("z", "hippo:host-cust1", 100)]
    assert owners() == {vll.pk}


def test_refused_change_restores_both_ends_as_last_verified(isp: Isp, alice: User, vll: Vll) -> None:
    before = content_of(vll)
    placed = modify(alice, vll, a_end={"outer_vlan": 200}, cir_bps=2 * GBIT, transport="geneve6")
    answer(vll, "a", "verified")
    refuse(vll, "z")
    placed.refresh_from_db()
    assert (placed.state, placed.revision, vll.revision) == ("inProgress", 3, 3)
    assert content_of(vll) == before
    assert vlans(placed.pk) == [("a", "rhino:host-cust1", 200)]
    (present,) = document(isp, "rhino")["present"]
    assert (present["revision"], present["access"]["outer_vlan"]) == (3, 100)
    answer(vll, "z", "verified")
    assert vlans(placed.pk) != []
    answer(vll, "a", "verified")
    placed.refresh_from_db()
    assert (placed.state, vll.lifecycle, vll.in_sync) == ("failed", "active", True)
    assert (placed.failure["router"], placed.failure["code"]) == ("hippo", CONFLICT["code"])
    assert owners() == {vll.pk}
    assert booked(vll.pk) == [("a", "rhino:host-cust1", GBIT), ("z", "hippo:host-cust1", GBIT)]
    assert sums_are_right()


def test_late_answer_about_the_refused_revision_does_not_count(isp: Isp, alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, a_end={"outer_vlan": 200})
    refuse(vll, "z")
    answer(vll, "a", "verified", revision=2)
    answer(vll, "z", "verified")
    placed.refresh_from_db()
    assert placed.state == "inProgress"


def test_lost_answer_is_requested_again(isp: Isp, alice: User, vll: Vll) -> None:
    modify(alice, vll, a_end={"outer_vlan": 200})
    assert set(routers_due(now=clock.now())) == {isp.routers["rhino"].pk, isp.routers["hippo"].pk}
    answer(vll, "a", "verified")
    assert routers_due(now=clock.now()) == [isp.routers["hippo"].pk]


@pytest.mark.parametrize(
    ("cir_bps", "meanwhile"), [(3 * GBIT, 3 * GBIT), (GBIT // 2, GBIT)], ids=["more", "less"]
)
def test_larger_rate_is_booked_until_the_change_is_verified(
    isp: Isp, alice: User, vll: Vll, cir_bps: int, meanwhile: int
) -> None:
    modify(alice, vll, cir_bps=cir_bps)
    port = Port.objects.get(pk=isp.ports["rhino:host-cust1"].pk)
    assert port.booked_bps == meanwhile
    activate(vll)
    port.refresh_from_db()
    assert port.booked_bps == cir_bps
    assert vll.cir_bps == cir_bps
    assert booked(vll.pk) == [("a", "rhino:host-cust1", cir_bps), ("z", "hippo:host-cust1", cir_bps)]
    assert sums_are_right()


def test_more_than_the_ports_free_bandwidth_is_refused_and_changes_nothing(
    isp: Isp, alice: User, vll: Vll
) -> None:
    Port.objects.update(speed_bps=100 * GBIT)
    with pytest.raises(PortFull) as refusal, transaction.atomic():
        modify(alice, vll, cir_bps=11 * GBIT)
    # Figures of the whole line, which itself uses 1 of the 10.
    assert (refusal.value.requested_bps, refusal.value.free_bps) == (11 * GBIT, 10 * GBIT)
    assert owners() == {vll.pk}
    assert Order.objects.filter(action="modify").count() == 0


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"exact_match": False}, (100 << 12, 101 << 12)),
        ({"tagging": "untagged", "outer_vlan": None}, (0, 2**25)),
    ],
    ids=["a looser match", "the whole port"],
)
def test_wider_selection_of_the_same_frames_is_leased_in_place(
    isp: Isp, alice: User, vll: Vll, changes: dict[str, Any], keys: tuple[int, int]
) -> None:
    from portal.allocation.models import PortVlanLease
    from portal.core.network.vlan_tags import Tagging

    if "tagging" in changes:
        changes = changes | {"tagging": Tagging(changes["tagging"])}
    placed = modify(alice, vll, a_end=changes)
    lease = PortVlanLease.objects.get(owner=vll.pk, side="a")
    assert (lease.keys.lower, lease.keys.upper) == keys
    refuse(vll, "z")
    activate(vll)
    placed.refresh_from_db()
    assert placed.state == "failed"
    lease.refresh_from_db()
    assert (lease.keys.lower, lease.keys.upper) == (100 << 12, (100 << 12) + 1)


def test_line_cannot_change_to_another_lines_vlan(isp: Isp, alice: User, vll: Vll) -> None:
    order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer=200), z_end=end(isp, "hippo:host-cust2"))
    with pytest.raises(VlanTaken):
        modify(alice, vll, a_end={"outer_vlan": 200})


def test_vlan_chosen_by_the_portal_survives_another_change(isp: Isp, alice: User) -> None:
    line = order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer="any")).vll
    activate(line)
    modify(alice, line, cir_bps=2 * GBIT)
    activate(line)
    assert line.ends.get(side="a").outer_vlan == 100


def test_transport_change_keeps_or_releases_the_vni(isp: Isp, alice: User, vll: Vll) -> None:
    vni = vll.vni
    modify(alice, vll, transport="geneve4")
    activate(vll)
    assert (vll.transport, vll.vni) == ("geneve4", vni)
    modify(alice, vll, transport="gre4")
    assert VniLease.objects.get(vni=vni).released_at is None
    activate(vll)
    assert (vll.transport, vll.vni) == ("gre4", None)
    assert VniLease.objects.get(vni=vni).released_at is not None
    assert GrePairLease.objects.get().owner == vll.pk


def test_packet_larger_than_the_path_mtu_is_refused(isp: Isp, alice: User, vll: Vll) -> None:
    with pytest.raises(PathTooNarrow):
        modify(alice, vll, svc_mtu=9000)


def test_rate_change_does_not_check_the_underlay_again(isp: Isp, alice: User, vll: Vll) -> None:
    BackboneLink.objects.update(a_ip_mtu=None, z_ip_mtu=None)
    assert modify(alice, vll, cir_bps=2 * GBIT).state == "acknowledged"


def test_auto_keeps_the_transport_that_still_fits(isp: Isp, alice: User) -> None:
    line = order(isp, alice, transport="auto").vll
    activate(line)
    Vll.objects.filter(pk=line.pk).update(encapsulation="geneve")
    line.refresh_from_db()
    modify(alice, line, svc_mtu=1400)
    assert line.transport == "geneve4"
    activate(line)
    modify(alice, line, svc_mtu=1300, transport="auto")
    assert line.transport == "vxlan4"


class TestMovingAnEnd:
    """A move from Rhino to Hippo, which makes the line a local cross-connect."""

    def move(self, isp: Isp, alice: User, vll: Vll) -> Order:
        return modify(alice, vll, a_end={"port": isp.ports["hippo:host-cust2"].pk})

    def test_old_router_gets_the_removal_until_it_confirms(self, isp: Isp, alice: User, vll: Vll) -> None:
        placed = self.move(isp, alice, vll)
        assert vll.transport == "l2xc"
        assert document(isp, "rhino") | {"schema": 1} == {
            "schema": 1,
            "router": "rhino",
            "generation": 1,
            "present": [],
            "removed": [{"vll": str(vll.pk), "end": "a", "revision": 2}],
        }
        assert [each["end"] for each in document(isp, "hippo")["present"]] == ["a", "z"]
        left(vll, "a", isp.routers["rhino"])
        assert document(isp, "rhino")["removed"] == []
        activate(vll)
        placed.refresh_from_db()
        assert placed.state == "completed"
        assert owners() == {vll.pk}
        assert vlans(vll.pk) == [("a", "hippo:host-cust2", 100), ("z", "hippo:host-cust1", 100)]
        assert VniLease.objects.get().released_at is not None
        assert sums_are_right()

    def test_resources_of_a_silent_old_router_stay_leased(self, isp: Isp, alice: User, vll: Vll) -> None:
        vni = vll.vni
        placed = self.move(isp, alice, vll)
        activate(vll)
        placed.refresh_from_db()
        assert placed.state == "completed"
        kept = VllTombstone.objects.get().leases
        assert vlans(kept) == [("a", "rhino:host-cust1", 100)]
        assert booked(kept) == [("a", "rhino:host-cust1", GBIT)]
        assert VniLease.objects.get(vni=vni).free_at is None
        assert isp.routers["rhino"].pk in routers_due(now=clock.now())
        left(vll, "a", isp.routers["rhino"], status="pending")
        RouterConvergence.objects.create(router=isp.routers["rhino"], next_query_at=clock.now() + FIRST_PAUSE)
        assert isp.routers["rhino"].pk not in routers_due(now=clock.now())
        with pytest.raises(VlanTaken):
            order(isp, alice, z_end=end(isp, "hippo:host-cust1", outer=7))
        left(vll, "a", isp.routers["rhino"])
        assert VniLease.objects.get(vni=vni).free_at is not None
        assert owners() == {vll.pk}
        assert sums_are_right()

    def test_end_cannot_return_before_the_old_router_confirmed(self, isp: Isp, alice: User, vll: Vll) -> None:
        self.move(isp, alice, vll)
        activate(vll)
        back = {"port": isp.ports["rhino:host-cust2"].pk}
        with pytest.raises(StillBeingRemoved):
            modify(alice, vll, a_end=back)
        left(vll, "a", isp.routers["rhino"])
        assert modify(alice, vll, a_end=back).state == "acknowledged"

    def test_refused_move_returns_and_cleans_the_new_router(self, isp: Isp, alice: User, vll: Vll) -> None:
        before = content_of(vll)
        placed = self.move(isp, alice, vll)
        left(vll, "a", isp.routers["rhino"])
        refuse(vll, "a")
        assert content_of(vll) == before
        assert [each["end"] for each in document(isp, "rhino")["present"]] == ["a"]
        assert document(isp, "hippo")["removed"] == [{"vll": str(vll.pk), "end": "a", "revision": 3}]
        activate(vll)
        placed.refresh_from_db()
        assert placed.state == "inProgress"
        left(vll, "a", isp.routers["hippo"])
        placed.refresh_from_db()
        assert placed.state == "failed"
        assert owners() == {vll.pk}
        assert vlans(vll.pk) == [("a", "rhino:host-cust1", 100), ("z", "hippo:host-cust1", 100)]
        assert sums_are_right()

    def test_removed_line_still_cleans_the_router_that_it_left(self, isp: Isp, alice: User, vll: Vll) -> None:
        self.move(isp, alice, vll)
        activate(vll)
        order_delete(user=alice, vll=vll, now=clock.now())
        for side in "az":
            answer(vll, side, "removed")
        assert vll.lifecycle == "terminated"
        assert document(isp, "rhino")["removed"] == [{"vll": str(vll.pk), "end": "a", "revision": 2}]
        left(vll, "a", isp.routers["rhino"])
        assert owners() == set()

    def test_database_refuses_an_end_on_a_router_with_its_tombstone(
        self, isp: Isp, alice: User, vll: Vll
    ) -> None:
        VllTombstone.objects.create(vll=vll, side="a", router=isp.routers["rhino"], revision=2)
        with pytest.raises(IntegrityError, match="stands on a router"), connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def test_end_cannot_move_to_another_customers_port(
        self, isp: Isp, nora: User, bakery: Customer, vll: Vll
    ) -> None:
        Port.objects.filter(pk=isp.ports["hippo:host-cust2"].pk).update(customer=bakery)
        with pytest.raises(PortOfAnotherCustomer):
            self.move(isp, nora, vll)


def test_change_without_differences_is_reported(isp: Isp, alice: User, vll: Vll) -> None:
    with pytest.raises(NothingToChange):
        modify(alice, vll, cir_bps=GBIT, a_end={"outer_vlan": 100})


def test_new_description_applies_immediately_and_stays_after_a_failure(
    isp: Isp, alice: User, vll: Vll
) -> None:
    modify(alice, vll, description="Milk", a_end={"outer_vlan": 200})
    assert vll.description == "Milk"
    refuse(vll, "a")
    activate(vll)
    assert vll.description == "Milk"


def test_change_for_an_older_revision_is_refused_with_both_numbers(isp: Isp, alice: User, vll: Vll) -> None:
    with pytest.raises(StaleRevision) as refusal:
        order_modify(user=alice, vll=vll, changes={"cir_bps": 5}, now=clock.now(), expected_revision=7)
    assert (refusal.value.expected, refusal.value.current) == (7, 1)


def test_only_one_change_at_a_time_and_only_in_service(isp: Isp, alice: User, vll: Vll) -> None:
    modify(alice, vll, cir_bps=2 * GBIT)
    with pytest.raises(OrderIsOpen):
        modify(alice, vll, cir_bps=3 * GBIT)
    with pytest.raises(OrderIsOpen):
        order_delete(user=alice, vll=vll, now=clock.now())
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    for side in "az":
        answer(vll, side, "removed")
    with pytest.raises(WrongLifecycle):
        modify(alice, vll, cir_bps=3 * GBIT)


def test_viewer_cannot_change_a_line(isp: Isp, bob: User, vll: Vll) -> None:
    with pytest.raises(NotAllowedToOrder):
        modify(bob, vll, cir_bps=2 * GBIT)


def test_database_refuses_a_change_without_the_previous_values(isp: Isp, alice: User, vll: Vll) -> None:
    placed = modify(alice, vll, cir_bps=2 * GBIT)
    with pytest.raises(IntegrityError, match="an_order_in_service_knows_the_way_back"), transaction.atomic():
        Order.objects.filter(pk=placed.pk).update(before=None)


def test_the_default_of_a_new_property_is_not_stored(
    isp: Isp, alice: User, vll: Vll, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The previous release refuses stored revisions with members that it does not know."""
    monkeypatch.setitem(line_revision._NEW_LINE_DEFAULTS, "link_loss_forwarding", False)
    monkeypatch.setitem(line_revision._NEW_END_DEFAULTS, "exact_match", True)
    placed = modify(alice, vll, cir_bps=GBIT // 2)
    assert placed.before is not None
    assert placed.after is not None
    for kept in (placed.before, placed.after):
        assert "link_loss_forwarding" not in kept
        assert "exact_match" not in kept["a"]
    read = LineRevision.from_json(placed.after)
    assert (read, read.link_loss_forwarding, read.a_end.exact_match) == (content_of(vll), False, True)
    assert read.a_end.columns["exact_match"]
    assert [each.property.name for each in differences_of(placed)] == ["cir_bps"]
    placed.after["link_loss_forwarding"] = True
    assert [(each.property.name, each.before, each.after) for each in differences_of(placed)] == [
        ("cir_bps", GBIT, GBIT // 2),
        ("link_loss_forwarding", False, True),
    ]
    assert replace(read, link_loss_forwarding=True).as_json()["link_loss_forwarding"]
