"""Admission by routers' cores: to the bit at the boundary, and the same before and while ordering."""

import pytest

from portal.accounts.models import Customer, User
from portal.allocation.cpu_core_bookings import CORES, bookable_of
from portal.allocation.errors import PortFull, RouterFull
from portal.allocation.models import RouterLoad
from portal.allocation.packet_capacity import end_load, largest_cir
from portal.core import clock
from portal.core.network.encapsulations import Transport
from portal.events.models import Event
from portal.inventory.models import ObservedRouter, Port, Router
from portal.vll.models import Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.order_approval import order_approve
from portal.vll.operations.reservations import reservation_make
from portal.web.lines.events import sentence as event_sentence
from tests.integration.busy_routers import fill
from tests.integration.isp import GBIT, Isp
from tests.integration.leases import loads, owners, sums_are_right
from tests.integration.lines.test_feasibility import check, codes
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import activate, answer, refuse

pytestmark = pytest.mark.django_db

VXLAN = end_load(GBIT, Transport.VXLAN4)
GENEVE = end_load(GBIT, Transport.GENEVE4)


@pytest.mark.parametrize("full", ["rhino", "hippo"])
def test_the_last_of_a_routers_cores_is_booked_and_nothing_more(isp: Isp, alice: User, full: str) -> None:
    fill(isp, full, except_load=VXLAN - 1)
    with pytest.raises(RouterFull) as refusal:
        order(isp, alice)
    assert (refusal.value.router, refusal.value.field) == (
        full,
        "a_end.port" if full == "rhino" else "z_end.port",
    )
    assert codes(check(isp, alice)) == ["router-full"]
    assert not Vll.objects.exists()
    RouterLoad.objects.update(booked=RouterLoad.objects.get().booked - 1)
    assert check(isp, alice).feasible
    vll = order(isp, alice).vll
    assert loads(vll.pk) == [("a", "rhino", VXLAN), ("z", "hippo", VXLAN)]


def test_the_refusal_says_what_is_full_what_is_left_and_what_would_fit(isp: Isp, alice: User) -> None:
    fill(isp, "hippo", except_load=VXLAN)
    with pytest.raises(RouterFull) as refusal:
        order(isp, alice, cir_bps=2 * GBIT)
    error = refusal.value
    # 4 cores of a Ryzen 5950X at 70%; 1 Gbit/s of 512-byte frames both ways in VXLAN is 0.033 of one.
    assert (error.bookable_cores, error.free_cores, error.requested_cores) == (2.8, 0.033, 0.066)
    assert (error.booked_cores, error.free_bps) == (2.767, GBIT)
    assert error.sentence == (
        "hippo cannot forward this much: it would take 0.066 of its processor cores, and 0.033 of 2.8 are"
        " free. Up to 1 Gbit/s would fit: order less, or choose a port on another router."
    )
    assert order(isp, alice, cir_bps=error.free_bps).state == "acknowledged"
    with pytest.raises(RouterFull) as nothing:
        order(isp, alice, a_end=end(isp, "rhino:host-cust2"), z_end=end(isp, "hippo:host-cust2"), cir_bps=1)
    assert nothing.value.sentence.endswith("Choose a port on another router, or ask the NOC for more cores.")


def test_both_full_routers_and_all_other_reasons_are_reported_together(isp: Isp, alice: User) -> None:
    fill(isp, except_load=0)
    found = check(isp, alice, svc_mtu=9000)
    assert codes(found) == ["path-too-narrow", "router-full", "router-full"]
    assert [(each.router, each.free_cores, each.free_bps) for each in found.routers] == [
        ("rhino", 0, 0),
        ("hippo", 0, 0),
    ]


def test_a_cheaper_transport_fits_where_auto_does_not(isp: Isp, alice: User) -> None:
    fill(isp, "rhino", except_load=VXLAN - 1)
    assert codes(check(isp, alice)) == ["router-full"]
    assert order(isp, alice, transport="gre4").vll.transport == "gre4"


def test_a_local_cross_connect_counts_each_frame_once(isp: Isp, alice: User) -> None:
    fill(isp, "rhino", except_load=2 * GBIT)
    local = {"z_end": end(isp, "rhino:host-cust2")}
    with pytest.raises(RouterFull) as refusal:
        order(isp, alice, cir_bps=GBIT + 1, **local)
    assert refusal.value.free_bps == GBIT
    (left,) = check(isp, alice, **local).routers
    assert left.free_bps == GBIT
    vll = order(isp, alice, **local).vll
    assert loads(vll.pk) == [("a", "rhino", GBIT), ("z", "rhino", GBIT)]


def test_workers_that_are_missing_count_as_cores_that_are_missing(isp: Isp, alice: User) -> None:
    rhino = ObservedRouter.objects.filter(router=isp.routers["rhino"])
    one_core = bookable_of(Router(cpu="Ryzen 5950X", cores=1))
    for workers, cores in ((None, 4), (9, 4), (2, 2), (1, 1), (0, 1)):
        rhino.update(vpp_workers=workers)
        assert bookable_of(Router.objects.get(name="rhino")) == pytest.approx(cores * one_core, abs=4)
    Port.objects.update(speed_bps=40 * GBIT, bookable_bps=40 * GBIT)
    with pytest.raises(RouterFull) as refusal:
        order(isp, alice, cir_bps=40 * GBIT)
    assert (refusal.value.router, refusal.value.bookable_cores) == ("rhino", 0.7)


def test_more_bandwidth_books_the_difference_and_less_gives_it_back(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    fill(isp, "hippo", except_load=VXLAN)
    doubled = largest_cir(2 * VXLAN, Transport.VXLAN4)
    with pytest.raises(RouterFull) as refusal:
        modify(alice, vll, cir_bps=doubled + 1)
    # Of the whole line, which has a share of them: the rate that the refusal names does fit.
    error = refusal.value
    assert (error.booked_cores, error.free_cores, error.requested_cores) == (2.734, 0.066, 0.066)
    assert error.free_bps == doubled
    modify(alice, vll, cir_bps=doubled)
    more = end_load(doubled, Transport.VXLAN4) - VXLAN
    assert loads(vll.orders.latest("ordered_at").pk) == [("a", "rhino", more), ("z", "hippo", more)]
    activate(vll)
    # A router that is overbooked, because it lost cores, still lets lines shrink.
    Router.objects.update(cores=1)
    modify(alice, vll, cir_bps=GBIT)
    activate(vll)
    assert loads(vll.pk) == [("a", "rhino", VXLAN), ("z", "hippo", VXLAN)]


def test_a_dearer_transport_books_the_difference_and_a_failed_change_gives_it_back(
    isp: Isp, alice: User
) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    other = fill(isp, "rhino", except_load=GENEVE - VXLAN - 1)
    with pytest.raises(RouterFull):
        modify(alice, vll, transport="geneve4")
    CORES.release(owner=other)
    other = fill(isp, "rhino", except_load=GENEVE - VXLAN)
    modify(alice, vll, transport="geneve4")
    assert loads(vll.orders.latest("ordered_at").pk) == [
        ("a", "rhino", GENEVE - VXLAN),
        ("z", "hippo", GENEVE - VXLAN),
    ]
    refuse(vll, "a")
    vll.refresh_from_db()
    activate(vll)
    assert (owners(), sums_are_right()) == ({vll.pk, other}, True)
    assert loads(vll.pk) == [("a", "rhino", VXLAN), ("z", "hippo", VXLAN)]


def test_auto_leaves_a_dear_transport_when_the_cores_are_full_and_says_so(isp: Isp, alice: User) -> None:
    isp.routers["hippo"].loopback4 = None
    isp.routers["hippo"].save()
    vll = order(isp, alice).vll
    assert vll.transport == "vxlan6"
    activate(vll)
    isp.routers["hippo"].loopback4 = "10.255.0.2"
    isp.routers["hippo"].save()
    fill(isp, "rhino", except_load=0)
    modify(alice, vll, cir_bps=GBIT + 10**6)
    vll.refresh_from_db()
    assert vll.transport == "vxlan4"
    said = event_sentence(Event.objects.filter(kind="order.acknowledged").latest("id"))
    assert said == "Order accepted (modify): vxlan4, because vxlan6 would be too much for the cores of rhino"


def test_moving_an_end_books_the_new_router_and_waits_for_the_old_one(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    modify(alice, vll, a_end={"port": isp.ports["hippo:host-cust2"].pk})
    vll.refresh_from_db()
    activate(vll)
    assert loads(vll.pk) == [("a", "hippo", GBIT), ("z", "hippo", GBIT)]
    # Rhino has not confirmed yet that the end is gone: its share stays booked by the tombstone.
    tombstone = vll.tombstones.get()
    assert loads(tombstone.leases) == [("a", "rhino", VXLAN)]
    assert sums_are_right()


def test_a_removed_line_gives_its_share_back(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    order_delete(user=alice, vll=vll, now=clock.now())
    assert loads(vll.pk) != []
    for side in "az":
        answer(Vll.objects.get(pk=vll.pk), side, "removed")
    assert loads(vll.pk) == []
    assert set(RouterLoad.objects.values_list("booked", flat=True)) == {0}


def test_reservation_books_cores_for_any_order_with_it(isp: Isp, alice: User) -> None:
    ends = {"a_end": end(isp, "rhino:host-cust1"), "z_end": end(isp, "hippo:host-cust1")}
    made = reservation_make(user=alice, cir_bps=GBIT, now=clock.now(), **ends)
    fill(isp, except_load=0)
    assert "router-full" in codes(check(isp, alice))
    with pytest.raises(RouterFull):
        reservation_make(
            user=alice,
            cir_bps=1,
            now=clock.now(),
            a_end=end(isp, "rhino:host-cust2"),
            z_end=end(isp, "hippo:host-cust2"),
        )
    assert check(isp, alice, reservation=made.pk, transport="geneve6").feasible
    vll = order(isp, alice, reservation=made.pk, transport="geneve6").vll
    assert loads(vll.pk) == [
        ("a", "rhino", end_load(GBIT, Transport.GENEVE6)),
        ("z", "hippo", end_load(GBIT, Transport.GENEVE6)),
    ]


def test_an_order_is_not_approved_onto_a_router_that_has_lost_its_cores(
    isp: Isp, alice: User, nora: User, dairy: Customer
) -> None:
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    Port.objects.update(speed_bps=40 * GBIT, bookable_bps=40 * GBIT)
    pending = order(isp, alice, cir_bps=40 * GBIT)
    Router.objects.filter(name="hippo").update(cores=1)
    with pytest.raises(RouterFull) as refusal:
        order_approve(user=nora, order=pending, now=clock.now())
    assert (refusal.value.router, refusal.value.booked_cores) == ("hippo", 0)
    Router.objects.filter(name="hippo").update(cores=4)
    assert order_approve(user=nora, order=pending, now=clock.now()).state == "inProgress"


def test_an_oversubscribed_port_takes_what_the_operator_allows_and_no_bit_more(isp: Isp, alice: User) -> None:
    Port.objects.filter(interface="host-cust1").update(bookable_bps=15 * GBIT)
    order(isp, alice, cir_bps=10 * GBIT)
    more = {"a_end": end(isp, "rhino:host-cust1", outer=2), "z_end": end(isp, "hippo:host-cust1", outer=2)}
    found = check(isp, alice, cir_bps=5 * GBIT, **more)
    assert found.feasible
    port = found.ends["a"].port
    assert (port.speed_bps, port.bookable_bps, found.ends["a"].free_bps) == (10 * GBIT, 15 * GBIT, 5 * GBIT)
    with pytest.raises(PortFull):
        order(isp, alice, cir_bps=5 * GBIT + 1, **more)
    order(isp, alice, cir_bps=5 * GBIT, **more)
