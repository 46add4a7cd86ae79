"""Orders of new lines: validation, leases, and that a refused order leaves no rows."""

import pytest
from django.db import IntegrityError, transaction

from portal.accounts.models import Customer, User
from portal.allocation.errors import PortFull, VlanTaken
from portal.allocation.models import BandwidthBooking, GrePairLease, PortVlanLease, VniLease
from portal.core.network.required_mtu import SvcMtuOutOfRange
from portal.core.network.vlan_tags import VlanMissing, VlanNotWanted, VlanOutOfRange
from portal.events.models import Event
from portal.inventory.models import BackboneLink, ObservedRouter, Port
from portal.underlay.errors import (
    FamilyMissing,
    LocalAcrossRouters,
    PathMtuUnknown,
    PathTooNarrow,
    TunnelWithinRouter,
)
from portal.vll.errors import (
    CirOutOfRange,
    EndsAreTheSame,
    FrameTooLargeForPort,
    NotAllowedToOrder,
    PortHasNoCustomer,
    PortsOfTwoCustomers,
    PortUnknown,
    RouterHasNoAgent,
)
from portal.vll.models import Order, Vll, VllEnd
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import requested

pytestmark = pytest.mark.django_db


def nothing_is_left(isp: Isp) -> bool:
    rows = [Vll, VllEnd, Order, VniLease, GrePairLease, PortVlanLease, BandwidthBooking, Event]
    return (
        not any(model.objects.exists() for model in rows)
        and not requested()
        and not Port.objects.exclude(booked_bps=0).exists()
    )


def test_order_creates_line_ends_leases_event_and_router_tasks(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    vll = placed.vll
    assert (placed.state, placed.action, vll.lifecycle, vll.oper_status) == (
        "acknowledged",
        "add",
        "pendingActive",
        "op-unknown",
    )
    assert vll.transport == "vxlan4"
    assert VniLease.objects.get(owner=vll.pk).vni == vll.vni
    assert [(e.side, e.outer_vlan, e.tunnel_address) for e in vll.ends.order_by("side")] == [
        ("a", 100, "10.255.0.1"),
        ("z", 100, "10.255.0.2"),
    ]
    assert {p.booked_bps for p in Port.objects.filter(interface="host-cust1")} == {GBIT}
    kinds = Event.objects.order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["order.acknowledged", "line_test.not_tested"]
    tasks = {(task, *args) for task, args in requested()}
    assert tasks == {
        ("provisioning.converge_router", isp.routers["rhino"].pk),
        ("provisioning.converge_router", isp.routers["hippo"].pk),
    }


def test_two_ends_on_one_router_become_a_local_cross_connect_without_vni(isp: Isp, alice: User) -> None:
    vll = order(isp, alice, z_end=end(isp, "rhino:host-cust2")).vll
    assert (vll.transport, vll.vni, vll.family) == ("l2xc", None, None)
    assert not VniLease.objects.exists()


def test_gre_leases_the_pair_of_loopbacks_once(isp: Isp, alice: User) -> None:
    first = order(isp, alice, transport="gre4").vll
    assert first.vni is None
    assert {e.tunnel_address for e in first.ends.all()} == {"10.255.0.1", "10.255.0.2"}
    from portal.allocation.errors import GrePairsExhausted

    with pytest.raises(GrePairsExhausted):
        order(
            isp,
            alice,
            transport="gre4",
            a_end=end(isp, "rhino:host-cust2"),
            z_end=end(isp, "hippo:host-cust2"),
        )


def test_any_vlan_leases_the_first_free_vlan(isp: Isp, alice: User) -> None:
    """The portal starts at 100: VLAN 1 is native on most switches, the next few often carry management."""
    order(isp, alice, z_end=end(isp, "hippo:host-cust1", outer=9))
    vll = order(
        isp, alice, a_end=end(isp, "rhino:host-cust1", outer="any"), z_end=end(isp, "hippo:host-cust1")
    ).vll
    a_end = vll.ends.get(side="a")
    assert (a_end.outer_vlan, a_end.requested_outer_vlan) == (101, None)


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ({"outer": 100}, {"outer": 100}, True),
        ({"outer": 100}, {"outer": 101}, False),
        ({"outer": 100}, {"tagging": "qinq", "outer": 100, "inner_vlan": 7}, False),
        ({"outer": 100, "exact_match": False}, {"tagging": "qinq", "outer": 100, "inner_vlan": 7}, True),
        ({"outer": 100, "exact_match": False}, {"tagging": "dot1ad", "outer": 100, "inner_vlan": 7}, False),
        (
            {"tagging": "qinq", "outer": 100, "inner_vlan": 7},
            {"tagging": "dot1ad", "outer": 100, "inner_vlan": 7},
            False,
        ),
        ({"tagging": "untagged"}, {"outer": 4094}, True),
        ({"tagging": "dot1ad", "outer": 4094, "inner_vlan": 4094}, {"tagging": "untagged"}, True),
    ],
)
def test_two_lines_cannot_select_the_same_frames_of_a_port(
    isp: Isp, alice: User, first: dict, second: dict, clash: bool
) -> None:
    order(isp, alice, a_end=end(isp, "rhino:host-cust1", **first))
    again = {"a_end": end(isp, "rhino:host-cust1", **second), "z_end": end(isp, "hippo:host-cust2")}
    if clash:
        with pytest.raises(VlanTaken) as refusal:
            order(isp, alice, **again)
        assert refusal.value.field.startswith("a_end.")
        assert Vll.objects.count() == 1
    else:
        order(isp, alice, **again)


def test_port_capacity_can_be_booked_to_the_last_bit(isp: Isp, alice: User) -> None:
    order(isp, alice, cir_bps=10 * GBIT)
    with pytest.raises(PortFull) as refusal:
        order(
            isp,
            alice,
            a_end=end(isp, "rhino:host-cust1", outer=101),
            z_end=end(isp, "hippo:host-cust2"),
            cir_bps=1,
        )
    assert (refusal.value.field, refusal.value.free_bps) == ("a_end.port", 0)


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"cir_bps": 0}, CirOutOfRange, "cir_bps"),
        ({"cir_bps": 10**12 + 1}, CirOutOfRange, "cir_bps"),
        ({"svc_mtu": 67}, SvcMtuOutOfRange, "svc_mtu"),
        ({"svc_mtu": 65536}, SvcMtuOutOfRange, "svc_mtu"),
        ({"transport": "l2xc"}, LocalAcrossRouters, "transport"),
        ({"svc_mtu": 9000}, PathTooNarrow, "svc_mtu"),
    ],
)
def test_invalid_value_is_refused_by_field(
    isp: Isp, alice: User, changes: dict, error: type[Exception], field: str
) -> None:
    with pytest.raises(error) as refusal:
        order(isp, alice, **changes)
    assert refusal.value.field == field  # type: ignore[attr-defined]
    assert nothing_is_left(isp)


@pytest.mark.parametrize(
    ("vlans", "error", "field"),
    [
        ({"outer": 0}, VlanOutOfRange, "z_end.outer_vlan"),
        ({"outer": 4095}, VlanOutOfRange, "z_end.outer_vlan"),
        ({"outer": None}, VlanMissing, "z_end.outer_vlan"),
        ({"tagging": "qinq"}, VlanMissing, "z_end.inner_vlan"),
        ({"inner_vlan": 5}, VlanNotWanted, "z_end.inner_vlan"),
    ],
)
def test_invalid_vlan_is_refused_by_field(
    isp: Isp, alice: User, vlans: dict, error: type[Exception], field: str
) -> None:
    with pytest.raises(error) as refusal:
        order(isp, alice, z_end=end(isp, "hippo:host-cust1", **vlans))
    assert refusal.value.field == field  # type: ignore[attr-defined]
    assert nothing_is_left(isp)


def test_two_ends_cannot_select_the_same_frames_of_one_port(isp: Isp, alice: User) -> None:
    with pytest.raises(EndsAreTheSame):
        order(isp, alice, z_end=end(isp, "rhino:host-cust1"))
    assert nothing_is_left(isp)


def test_tunnel_within_one_router_is_refused(isp: Isp, alice: User) -> None:
    with pytest.raises(TunnelWithinRouter):
        order(isp, alice, z_end=end(isp, "rhino:host-cust2"), transport="vxlan4")
    assert nothing_is_left(isp)


def test_missing_address_family_is_refused_and_auto_selects_the_other(isp: Isp, alice: User) -> None:
    router = isp.routers["hippo"]
    router.loopback4 = None
    router.save()
    with pytest.raises(FamilyMissing) as refusal:
        order(isp, alice, transport="vxlan4")
    assert [r.name for r in refusal.value.routers] == ["hippo"]
    assert nothing_is_left(isp)
    assert order(isp, alice).vll.transport == "vxlan6"


def test_unknown_link_mtu_refuses_the_order(isp: Isp, alice: User) -> None:
    BackboneLink.objects.filter(pk=isp.links["zebra-panda"].pk).update(a_ip_mtu=None, z_ip_mtu=None)
    with pytest.raises(PathMtuUnknown) as refusal:
        order(isp, alice)
    assert [link.id for link in refusal.value.links] == [isp.links["zebra-panda"].pk]
    assert nothing_is_left(isp)


def test_silent_agent_makes_the_mtu_of_its_links_unknown(isp: Isp, alice: User) -> None:
    order(isp, alice)
    from datetime import timedelta

    seen = ObservedRouter.objects.get(router=isp.routers["rhino"])
    ObservedRouter.objects.filter(pk=seen.pk).update(reported_at=seen.reported_at - timedelta(minutes=6))
    with pytest.raises(PathMtuUnknown):
        order(isp, alice, a_end=end(isp, "rhino:host-cust2"), z_end=end(isp, "hippo:host-cust2"))


def test_refusal_names_link_mtu_shortfall_and_largest_packet(isp: Isp, alice: User) -> None:
    # VXLAN over IPv4 needs svc_mtu + 14 + 36; any single failure may lead over the narrow link.
    BackboneLink.objects.filter(pk=isp.links["panda-otter"].pk).update(z_ip_mtu=1550)
    assert order(isp, alice, svc_mtu=1500, a_end=end(isp, "rhino:host-cust2")).vll.transport == "vxlan4"
    with pytest.raises(PathTooNarrow) as refusal:
        order(isp, alice, svc_mtu=1501, z_end=end(isp, "hippo:host-cust2"), transport="vxlan4")
    error = refusal.value
    assert (error.link.id, error.available, error.required, error.shortfall) == (
        isp.links["panda-otter"].pk,
        1550,
        1551,
        1,
    )
    assert [t.value for t in error.fits] == ["gre4"]
    assert error.sentence == (
        "With VXLAN over IPv4 this path carries packets of up to 1500 bytes, 1 fewer than requested:"
        f" link {error.link.name} has an IP MTU of 1550 bytes, but 1551 are needed."
        " GRE over IPv4 would carry up to 1504."
    )


def test_auto_selects_a_transport_that_carries_the_packet(isp: Isp, alice: User) -> None:
    BackboneLink.objects.filter(pk=isp.links["panda-otter"].pk).update(z_ip_mtu=1550)
    with pytest.raises(PathTooNarrow) as refusal:
        order(isp, alice, svc_mtu=1505)
    error = refusal.value
    assert error.sentence == (
        "This path carries packets of up to 1504 bytes, 1 fewer than requested:"
        f" link {error.link.name} has an IP MTU of 1550 bytes, but 1551 are needed."
    )
    assert order(isp, alice, svc_mtu=1504).vll.transport == "gre4"


def test_frame_larger_than_the_port_mtu_is_refused(isp: Isp, alice: User) -> None:
    Port.objects.filter(pk=isp.ports["hippo:host-cust1"].pk).update(max_frame=1517)
    with pytest.raises(FrameTooLargeForPort) as refusal:
        order(isp, alice)
    assert (refusal.value.field, refusal.value.frame) == ("z_end.port", 1518)
    assert nothing_is_left(isp)
    Port.objects.filter(pk=isp.ports["hippo:host-cust1"].pk).update(max_frame=1518)
    order(isp, alice)


def test_stranger_gets_the_same_error_for_a_foreign_and_an_absent_port(isp: Isp, charlie: User) -> None:
    with pytest.raises(PortUnknown):
        order(isp, charlie)
    assert nothing_is_left(isp)


def test_viewer_cannot_order(isp: Isp, bob: User) -> None:
    with pytest.raises(NotAllowedToOrder):
        order(isp, bob)
    assert nothing_is_left(isp)


def test_noc_orders_for_one_customer_and_not_across_two(isp: Isp, nora: User, bakery: Customer) -> None:
    Port.objects.filter(pk=isp.ports["hippo:host-cust2"].pk).update(customer=bakery)
    with pytest.raises(PortsOfTwoCustomers):
        order(isp, nora, z_end=end(isp, "hippo:host-cust2"))
    Port.objects.filter(pk=isp.ports["hippo:host-cust2"].pk).update(customer=None)
    with pytest.raises(PortHasNoCustomer):
        order(isp, nora, z_end=end(isp, "hippo:host-cust2"))
    assert nothing_is_left(isp)
    assert order(isp, nora).ordered_by == "nora"


def test_line_cannot_end_on_a_router_without_agent(isp: Isp, alice: User, dairy: Customer) -> None:
    port = Port.objects.create(
        router=isp.routers["zebra"], interface="x", customer=dairy, speed_bps=GBIT, bookable_bps=GBIT
    )
    isp.ports["zebra:x"] = port
    with pytest.raises(RouterHasNoAgent):
        order(isp, alice, z_end=end(isp, "zebra:x"))


@pytest.mark.django_db(transaction=True)
def test_database_requires_two_ends(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    with pytest.raises(IntegrityError, match="has 1 ends"), transaction.atomic():
        vll.ends.filter(side="a").delete()
