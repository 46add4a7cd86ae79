"""VLANs of a port that interfaces outside the portal take: the portal neither chooses nor accepts them."""

from typing import Any

import pytest

from portal.accounts.models import User
from portal.allocation.errors import NoVlanFree, VlanInForeignUse
from portal.allocation.pool_usage import vlan_usage
from portal.core import clock
from portal.inventory.models import ObservedInterface, Port
from portal.inventory.observation_store import circuits_store
from portal.vll.line_spec import LineSpec
from portal.vll.models import Vll
from portal.vll.operations.reservations import reservation_make
from portal.vll.quote import quote, quote_change
from tests.integration.circuits import attachment, circuit, tunnel
from tests.integration.isp import GBIT, Isp
from tests.integration.orders import end, modify, order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db

_DOT1Q = {"dot1ad": False, "inner": None, "least_tags": 1, "most_tags": 3}
# As an agent reports the sub-interfaces that VPP's command line makes with these words.
FRAMES: dict[str, dict[str, Any]] = {
    "dot1q 100": {**_DOT1Q, "outer": 100},
    "dot1q 100 exact-match": {**_DOT1Q, "outer": 100, "most_tags": 1},
    "dot1q 100 inner-dot1q any": {**_DOT1Q, "outer": 100, "least_tags": 2},
    "dot1q 100 inner-dot1q 7": {**_DOT1Q, "outer": 100, "inner": 7, "least_tags": 2},
    "dot1ad 100 inner-dot1q 7": {"dot1ad": True, "outer": 100, "inner": 7, "least_tags": 2, "most_tags": 3},
    "default": {**_DOT1Q, "dot1ad": None, "outer": None},
    "untagged": {**_DOT1Q, "dot1ad": None, "outer": None, "least_tags": 0, "most_tags": 0},
}


def reported(port: Port, frames: dict[str, Any], *, name: str = "") -> ObservedInterface:
    return ObservedInterface.objects.create(
        router=port.router,
        name=name or f"{port.interface}.7777",
        admin_up=True,
        link_up=True,
        parent=port.interface,
        frames=frames,
    )


@pytest.fixture
def port(isp: Isp) -> Port:
    return isp.ports["rhino:host-cust1"]


def at_rhino(isp: Isp, **access: Any) -> dict[str, Any]:
    return {
        "a_end": end(isp, "rhino:host-cust1", **access),
        "z_end": end(isp, "hippo:host-cust1", outer=100),
    }


def refusals(isp: Isp, user: User, ends: dict[str, Any]) -> list[str]:
    request = LineSpec(svc_mtu=1500, cir_bps=GBIT, transport="auto", **ends)
    found = quote(request, user=user, now=clock.now())
    return [refusal.code for refusal in found.refusals]


def change_refusals(user: User, line: Vll, **changes: Any) -> list[str]:
    line.refresh_from_db()
    found = quote_change(line, changes, user=user, now=clock.now())
    return [refusal.code for refusal in found.refusals]


@pytest.mark.parametrize(
    ("foreign", "access", "overlap"),
    [
        ("dot1q 100", {"outer": 100}, True),
        ("dot1q 100", {"outer": 101}, False),
        ("dot1q 100", {"tagging": "qinq", "outer": 100, "inner_vlan": 7}, True),
        ("dot1q 100", {"tagging": "dot1ad", "outer": 100, "inner_vlan": 7}, False),
        ("dot1q 100 exact-match", {"outer": 100}, True),
        ("dot1q 100 exact-match", {"tagging": "qinq", "outer": 100, "inner_vlan": 7}, False),
        ("dot1q 100 inner-dot1q any", {"outer": 100}, False),
        ("dot1q 100 inner-dot1q any", {"outer": 100, "exact_match": False}, True),
        ("dot1q 100 inner-dot1q any", {"tagging": "qinq", "outer": 100, "inner_vlan": 8}, True),
        ("dot1q 100 inner-dot1q 7", {"tagging": "qinq", "outer": 100, "inner_vlan": 8}, False),
        ("dot1q 100 inner-dot1q 7", {"outer": 100, "exact_match": False}, True),
        ("dot1ad 100 inner-dot1q 7", {"tagging": "dot1ad", "outer": 100, "inner_vlan": 7}, True),
        ("dot1ad 100 inner-dot1q 7", {"tagging": "qinq", "outer": 100, "inner_vlan": 7}, False),
        ("default", {"outer": 4000}, True),
        ("untagged", {"outer": 100}, False),
        ("untagged", {"tagging": "untagged"}, True),
        ("dot1q 100 exact-match", {"tagging": "untagged"}, True),
    ],
)
def test_an_end_that_shares_frames_with_a_foreign_interface_is_refused(
    isp: Isp, alice: User, port: Port, foreign: str, access: dict[str, Any], overlap: bool
) -> None:
    reported(port, FRAMES[foreign])
    wanted = at_rhino(isp, **access)
    assert refusals(isp, alice, wanted) == (["vlan-in-foreign-use"] if overlap else [])
    if not overlap:
        order(isp, alice, **wanted)
        return
    with pytest.raises(VlanInForeignUse) as refusal:
        order(isp, alice, **wanted)
    assert not Vll.objects.exists()
    assert refusal.value.interface == "host-cust1.7777"
    assert "host-cust1.7777, which this portal does not manage" in refusal.value.sentence
    with pytest.raises(VlanInForeignUse):
        reservation_make(user=alice, cir_bps=GBIT, now=clock.now(), **wanted)


def test_any_vlan_is_one_that_no_foreign_interface_takes(isp: Isp, alice: User, port: Port) -> None:
    reported(port, FRAMES["dot1q 100"])
    reported(port, {**FRAMES["dot1q 100 exact-match"], "outer": 101}, name="host-cust1.101")
    line = order(isp, alice, **at_rhino(isp, outer="any")).vll
    assert line.ends.get(side="a").outer_vlan == 102
    request = LineSpec(svc_mtu=1500, cir_bps=GBIT, transport="auto", **at_rhino(isp, outer="any"))
    found = quote(request, user=alice, now=clock.now()).ends["a"]
    assert (found.vlans_free, found.vlans[:2]) == (4094 - 3, [103, 104])


def test_both_ends_get_the_same_vlan_that_is_free_at_both(isp: Isp, alice: User) -> None:
    reported(isp.ports["rhino:host-cust1"], FRAMES["dot1q 100"])
    reported(isp.ports["hippo:host-cust1"], {**FRAMES["dot1q 100"], "outer": 101})
    line = order(
        isp,
        alice,
        a_end=end(isp, "rhino:host-cust1", outer="any"),
        z_end=end(isp, "hippo:host-cust1", outer="any"),
    ).vll
    assert {each.outer_vlan for each in line.ends.all()} == {102}


def test_no_vlan_is_left_beneath_a_foreign_interface_for_all_tagged_frames(
    isp: Isp, alice: User, port: Port
) -> None:
    reported(port, FRAMES["default"])
    with pytest.raises(NoVlanFree):
        order(isp, alice, **at_rhino(isp, outer="any"))
    assert vlan_usage(port).free == ()


def test_a_line_in_service_keeps_its_vlan_and_moves_only_to_a_free_one(
    isp: Isp, alice: User, port: Port
) -> None:
    line = order(isp, alice, **at_rhino(isp, outer=100)).vll
    activate(line)
    reported(port, FRAMES["dot1q 100"])
    reported(port, {**FRAMES["dot1q 100"], "outer": 200}, name="host-cust1.200")
    assert change_refusals(alice, line, cir_bps=2 * GBIT) == []
    modify(alice, line, cir_bps=2 * GBIT)
    activate(line)
    assert change_refusals(alice, line, a_end={"outer_vlan": 200}) == ["vlan-in-foreign-use"]
    with pytest.raises(VlanInForeignUse):
        modify(alice, line, a_end={"outer_vlan": 200})


def test_an_agent_of_an_earlier_release_shows_only_cross_connected_interfaces(
    isp: Isp, alice: User, port: Port
) -> None:
    circuits_store(port.router, [circuit(attachment(port.interface, 300), tunnel("rhino", "hippo", 900))])
    ObservedInterface.objects.create(
        router=port.router, name="host-cust1.100", admin_up=True, link_up=True, parent=port.interface
    )
    with pytest.raises(VlanInForeignUse):
        order(isp, alice, **at_rhino(isp, outer=300))
    order(isp, alice, **at_rhino(isp, outer=100))


def test_vlans_in_foreign_use_are_shown_as_used(port: Port) -> None:
    reported(port, FRAMES["dot1q 100"])
    reported(port, {**FRAMES["dot1q 100 inner-dot1q 7"], "outer": 200}, name="host-cust1.200")
    reported(port, FRAMES["untagged"], name="host-cust1.1")
    usage = vlan_usage(port)
    assert [str(each) for each in (*usage.used, *usage.shared)] == ["100", "200"]


def test_a_foreign_interface_on_another_port_conflicts_with_nothing(isp: Isp, alice: User) -> None:
    reported(isp.ports["rhino:host-cust2"], FRAMES["dot1q 100"])
    order(isp, alice, **at_rhino(isp, outer=100))
