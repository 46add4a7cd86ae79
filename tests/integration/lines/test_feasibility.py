"""Serviceability: the check before an order agrees with the result of the order."""

import random
from datetime import datetime
from typing import Any

import pytest
from django.db import transaction

from portal.accounts.models import Customer, User
from portal.allocation.models import PortVlanLease, ReservedVniRange, VniLease
from portal.allocation.tunnel_leases import LAST_VNI
from portal.core import clock
from portal.core.errors import DomainError
from portal.events.models import Event
from portal.inventory.models import BackboneLink, ObservedInterface, ObservedRouter, Port, Router
from portal.vll.errors import CirOutOfRange, EndsAreTheSame
from portal.vll.line_spec import EndSpec, LineSpec
from portal.vll.models import Order, Reservation, Vll
from portal.vll.operations.add_line import order_add
from portal.vll.operations.reservations import reservation_make
from portal.vll.quote import Quote, quote
from portal.vll.router_operations.actions import router_lock_set
from tests.integration.api.test_api_v1 import body, client
from tests.integration.busy_routers import fill
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, modify, order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text
from tests.integration.web_pages.test_order_page import fields

pytestmark = pytest.mark.django_db
SIDES = (("a", "rhino"), ("z", "hippo"))


def check(isp: Isp, user: User, reservation: Any = None, **changes: Any) -> Quote:
    values: dict[str, Any] = {
        "a_end": end(isp, "rhino:host-cust1"),
        "z_end": end(isp, "hippo:host-cust1"),
        "svc_mtu": 1500,
        "cir_bps": GBIT,
        "transport": "auto",
        **changes,
    }
    return quote(LineSpec(**values), user=user, now=clock.now(), reservation=reservation)


def codes(found: Quote) -> list[str]:
    return [refusal.code for refusal in found.refusals]


def test_check_shows_the_path_and_writes_nothing(isp: Isp, alice: User) -> None:
    found = check(isp, alice)
    assert found.feasible
    assert found.selected is not None
    assert (found.selected.transport, found.selected.required) == ("vxlan4", 1500 + 14 + 36)
    assert found.selected.path is not None
    assert found.selected.path.path_mtu == 9000
    assert [tuple(each.values()) for each in found.links[:1]] == [
        (
            "rhino:bb-next — hippo:bb-prev",
            9000,
            False,
        )
    ]
    assert sum(each["backup"] for each in found.links) == 4
    # Automatic selection chooses GRE over IPv4 here.
    assert found.largest_svc_mtu == 9000 - 32 - 14
    assert [option.transport for option in found.options][:2] == ["gre4", "vxlan4"]
    assert (found.ends["a"].vlans_free, found.ends["a"].vlans[:3]) == (4094, [100, 101, 102])
    assert found.ends["z"].free_bps == 10 * GBIT
    for model in (Vll, Order, VniLease, PortVlanLease, Reservation, Event):
        assert not model.objects.exists()
    assert not requested()


def test_all_reasons_are_reported_together(isp: Isp, alice: User) -> None:
    order(isp, alice)
    Port.objects.filter(pk=isp.ports["hippo:host-cust1"].pk).update(max_frame=1000)
    found = check(isp, alice, svc_mtu=9000, cir_bps=20 * GBIT)
    assert codes(found) == [
        "path-too-narrow",
        "frame-too-large-for-port",
        "peak-above-port",
        "vlan-taken",
        "port-full",
        "vlan-taken",
        "port-full",
    ]


def test_largest_packet_is_limited_by_path_and_ports(isp: Isp, alice: User) -> None:
    Port.objects.filter(pk=isp.ports["hippo:host-cust1"].pk).update(max_frame=1600)
    assert check(isp, alice).largest_svc_mtu == 1600 - 14 - 4
    local = check(isp, alice, z_end=end(isp, "rhino:host-cust2"))
    assert [option.transport for option in local.options] == ["l2xc"]
    assert local.largest_svc_mtu == 9022 - 14 - 4
    BackboneLink.objects.update(a_ip_mtu=None, z_ip_mtu=None)
    assert check(isp, alice).largest_svc_mtu is None


def test_stranger_learns_nothing_about_the_ports(isp: Isp, charlie: User) -> None:
    found = check(isp, charlie)
    assert codes(found) == ["port-unknown", "port-unknown"]
    assert (found.ends, found.options, found.links) == ({}, (), [])


def test_reservation_counts_as_the_callers_own(isp: Isp, alice: User) -> None:
    ends = {"a_end": end(isp, "rhino:host-cust1"), "z_end": end(isp, "hippo:host-cust1")}
    made = reservation_make(user=alice, cir_bps=10 * GBIT, now=clock.now(), **ends)
    assert codes(check(isp, alice)) == ["vlan-taken", "port-full", "vlan-taken", "port-full"]
    assert check(isp, alice, reservation=made.pk, cir_bps=10 * GBIT).feasible


@pytest.fixture
def busy_isp(isp: Isp, alice: User, dairy: Customer, bakery: Customer) -> Isp:
    """Return an ISP with an example of every possible conflict."""
    isp.ports["rhino:whole"] = _port(isp, "rhino", "whole", dairy, bookable_bps=40 * GBIT)
    isp.ports["hippo:tiny"] = _port(isp, "hippo", "tiny", dairy, bookable_bps=1000, max_frame=1522)
    isp.ports["zebra:plain"] = _port(isp, "zebra", "plain", dairy)
    isp.ports["hippo:bakers"] = _port(isp, "hippo", "bakers", bakery)
    isp.ports["hippo:nobodys"] = _port(isp, "hippo", "nobodys", None)
    Router.objects.filter(name="hippo").update(loopback6=None)
    foreign = {"dot1ad": False, "outer": 2, "inner": None, "least_tags": 1, "most_tags": 3}
    for port in (isp.ports["rhino:host-cust2"], isp.ports["zebra:plain"]):
        facts = {"name": f"{port.interface}.2", "parent": port.interface, "admin_up": True, "link_up": True}
        ObservedInterface.objects.create(router=port.router, frames=foreign, **facts)
    order(isp, alice, a_end=end(isp, "rhino:whole", "untagged"), z_end=end(isp, "hippo:host-cust2", outer=1))
    order(isp, alice, cir_bps=9 * GBIT)
    return isp


def _port(isp: Isp, router: str, interface: str, customer: Customer | None, **more: Any) -> Port:
    facts = {"speed_bps": 10 * GBIT, "bookable_bps": 10 * GBIT} | more
    return Port.objects.create(router=isp.routers[router], interface=interface, customer=customer, **facts)


def _some_end(draw: random.Random, isp: Isp) -> EndSpec:
    name = draw.choice(["rhino:host-cust1", "hippo:host-cust1", "rhino:host-cust2", *isp.ports])
    tagging = draw.choice(["untagged", "dot1q", "dot1q", "dot1q", "qinq", "dot1ad"])
    outer: Any = draw.choice([1, 2, 100, "any", "any", 100, 4094])
    inner = draw.choice([1, 100]) if tagging in ("qinq", "dot1ad") else None
    if draw.random() < 0.05:
        outer, inner = draw.choice([(0, inner), (4095, inner), (None, inner), (outer, 7)])
    exact = tagging == "untagged" or draw.random() < 0.8
    return end(isp, name, tagging, outer, inner_vlan=inner, exact_match=exact)


def _some_request(draw: random.Random, isp: Isp) -> LineSpec:
    transports = ["auto"] * 6 + ["vxlan4", "vxlan6", "geneve4", "gre4", "gre4", "l2xc"]
    return LineSpec(
        a_end=_some_end(draw, isp),
        z_end=_some_end(draw, isp),
        svc_mtu=draw.choice([1500, 1500, 1500, 67, 68, 1504, 8942, 8943, 8950, 9000, 65536]),
        cir_bps=draw.choice([1, 1000, 1001, 10**6, GBIT, GBIT + 1, 10 * GBIT, 0, 10**13]),
        transport=draw.choice(transports),
        eir_bps=draw.choice([0] * 8 + [1, 1, GBIT, 10 * GBIT]),
        cbs_bytes=draw.choice([None] * 8 + [1500, 100_000, 100_000]),
        ebs_bytes=draw.choice([None] * 10 + [100_000]),
    )


def _order(user: User, spec: LineSpec, *, now: datetime, keep: bool) -> DomainError | None:
    """Return the refusal or None. Only some accepted orders stay, so that ports fill up slowly."""
    try:
        with transaction.atomic():
            order_add(user=user, spec=spec, now=now)
            transaction.set_rollback(not keep)
    except DomainError as refusal:
        return refusal
    return None


@pytest.mark.parametrize("orders", [100, pytest.param(250, marks=pytest.mark.release)])
@pytest.mark.parametrize("state", ["plenty", "no VNI left", "few cores left"])
def test_check_of_random_orders_agrees_with_ordering(
    busy_isp: Isp, alice: User, state: str, orders: int
) -> None:
    if state == "no VNI left":
        ReservedVniRange.objects.create(first=1, last=LAST_VNI, reason="all")
    if state == "few cores left":
        # The limit is below the free bandwidth of a port, so that either of them is full first.
        fill(busy_isp, "rhino", except_load=4 * GBIT)
        fill(busy_isp, "hippo", except_load=3 * GBIT)
    # All use one time, because on a slow machine the agents would count as silent before the end.
    now, draw, accepted, reasons = clock.now(), random.Random(4), 0, set()
    keys = random.Random(6)
    for _ in range(orders):
        request = _some_request(draw, busy_isp)
        ObservedRouter.objects.update(gre_keys=keys.random() < 0.5)
        checked = quote(request, user=alice, now=now)
        refusal = _order(alice, request, now=now, keep=draw.random() < 0.5)
        assert checked.feasible is (refusal is None), (request, refusal, checked.refusals)
        if refusal is None:
            accepted += 1
        else:
            first = checked.refusals[0]
            assert (refusal.code, refusal.field) == (first.code, first.field)
            reasons.add(refusal.code)
    assert accepted > 5
    assert len(reasons) > 10, reasons
    assert ("router-full" in reasons) is (state == "few cores left")


class TestRefusals:
    def sentences(self, isp: Isp, alice: User, **values: Any) -> list[str]:
        return [refusal.sentence for refusal in check(isp, alice, **values).refusals]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ({"outer": 100}, {"outer": 100}),
            ({"tagging": "untagged"}, {"outer": 100}),
            ({"tagging": "untagged"}, {"outer": "any"}),
            ({"tagging": "untagged"}, {"tagging": "untagged"}),
            ({"outer": 100, "exact_match": False}, {"tagging": "qinq", "outer": 100, "inner_vlan": 7}),
        ],
    )
    def test_ends_that_select_the_same_frames_are_not_reported_as_another_line(
        self, isp: Isp, alice: User, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        ends = {
            "a_end": end(isp, "rhino:host-cust1", **first),
            "z_end": end(isp, "rhino:host-cust1", **second),
        }
        assert self.sentences(isp, alice, **ends) == [
            "Both ends would take the same frames from rhino:host-cust1. Choose another port, or other "
            "VLANs for one of them."
        ]
        with pytest.raises(EndsAreTheSame):
            order(isp, alice, **ends)

    def test_any_vlan_avoids_the_vlan_of_the_other_end(self, isp: Isp, alice: User) -> None:
        port = "rhino:host-cust1"
        ends = {"a_end": end(isp, port, outer="any"), "z_end": end(isp, port, outer=100)}
        assert self.sentences(isp, alice, **ends) == []
        vll = order(isp, alice, **ends).vll
        assert [each.outer_vlan for each in vll.ends.order_by("side")] == [101, 100]

    def test_port_with_lines_is_not_free_as_a_whole(self, isp: Isp, alice: User) -> None:
        order(isp, alice)
        assert self.sentences(isp, alice, a_end=end(isp, "rhino:host-cust1", tagging="untagged"))[0] == (
            "Other lines use VLANs on rhino:host-cust1, so the whole port is not free. Choose another "
            "port, or a VLAN on this one."
        )

    def test_port_leased_as_a_whole_has_no_other_vlan(self, isp: Isp, alice: User) -> None:
        ends = {f"{side}_end": end(isp, f"{name}:host-cust1", tagging="untagged") for side, name in SIDES}
        order(isp, alice, **ends)
        assert self.sentences(isp, alice)[0] == (
            "Another line uses all of rhino:host-cust1. Choose another port."
        )

    def test_packet_size_that_no_transport_carries_is_refused_once(self, isp: Isp, alice: User) -> None:
        assert self.sentences(isp, alice, svc_mtu=20) == [
            "Packets of 20 bytes are not possible. Enter a size from 68 to 65513 bytes."
        ]

    def test_missing_vlan_names_its_end(self, isp: Isp, alice: User) -> None:
        ends = {f"{side}_end": end(isp, f"{name}:host-cust1", outer=None) for side, name in SIDES}
        assert self.sentences(isp, alice, **ends) == [
            "Enter the outer VLAN of the A end: a number from 1 to 4094.",
            "Enter the outer VLAN of the Z end: a number from 1 to 4094.",
        ]

    def test_less_than_the_minimum_bandwidth_is_not_sold_and_can_be_kept(
        self, isp: Isp, alice: User, settings: Any
    ) -> None:
        line = order(isp, alice, cir_bps=100).vll
        activate(line)
        settings.LONGLINE_MIN_CIR_BPS = 10**6
        fresh = {f"{side}_end": end(isp, f"{name}:host-cust1", outer=7) for side, name in SIDES}
        assert self.sentences(isp, alice, cir_bps=999_999, **fresh) == [
            "999.999 kbit/s is not between 1 Mbit/s and 1 Tbit/s."
        ]
        assert self.sentences(isp, alice, cir_bps=10**6, **fresh) == []
        modify(alice, line, svc_mtu=1400)
        activate(line)
        with pytest.raises(CirOutOfRange):
            modify(alice, line, cir_bps=200)


class TestReasonsToWait:
    def test_order_waits_for_a_router_with_a_maintenance_lock(
        self, isp: Isp, alice: User, nora: User
    ) -> None:
        router_lock_set(router=isp.routers["hippo"], on=True, user=nora, now=clock.now())
        found = check(isp, alice)
        assert found.feasible
        assert [wait.code for wait in found.waits] == ["router-held"]
        assert "The NOC has been working on hippo since" in found.waits[0].message

    def test_order_waits_for_an_interface_that_vpp_does_not_have(self, isp: Isp, alice: User) -> None:
        ObservedInterface.objects.filter(router=isp.routers["rhino"]).delete()
        found = check(isp, alice)
        assert [(wait.code, wait.message) for wait in found.waits] == [
            (
                "interface-not-reported",
                "rhino reports no interface host-cust1. A line there would wait until it has one.",
            )
        ]
        # Without a report the portal does not know whether the interface is missing.
        ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(encapsulations=None)
        assert check(isp, alice).waits == []

    def test_order_without_a_reason_does_not_wait(self, isp: Isp, alice: User) -> None:
        assert check(isp, alice).waits == []

    def test_preview_and_api_show_the_reason_to_wait(self, isp: Isp, alice: User, nora: User) -> None:
        router_lock_set(router=isp.routers["hippo"], on=True, user=nora, now=clock.now())
        shown = text(signed_in(alice).post("/orders/new/check/", fields(isp)))
        assert "Possible, but would wait" in shown
        assert "It would not be set up at once: The NOC has been working on hippo since" in shown
        [wait] = client(alice).post("/api/v1/vlls/validate", body(isp), format="json").json()["waits"]
        assert wait["code"] == "router-held"
