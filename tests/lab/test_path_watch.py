"""Two real VPPs notice that the path between them loses frames, and lines of every transport are down."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devstack.client import Json
from devstack.routers.vpp_network import BlackHole
from tests.lab.abilities import Ability
from tests.lab.conftest import Lab

WAIT_S = 60
# One VLAN for each transport, different from those of other tests.
TRANSPORTS = ("vxlan4", "vxlan6", "geneve4", "geneve6", "gre4", "gre6")
FIRST_VLAN = 3000


@pytest.fixture(scope="module")
def lines(lab: Lab) -> Iterator[dict[str, str]]:
    """Yield the id of a line of each transport, by transport."""
    lab.needs(Ability.PATH_WATCH)
    customer = lab.stack.client("customer")
    with ExitStack() as undo:
        lines = {}
        for vlan, transport in enumerate(TRANSPORTS, start=FIRST_VLAN):
            end = {"tagging": "dot1q", "outer_vlan": vlan, "inner_vlan": None, "exact_match": True}
            ends = {
                f"{side}_end": end | {"port": lab.stack.port(router, "host-cust1")}
                for side, router in (("a", "rhino"), ("z", "hippo"))
            }
            accepted = customer.order(svc_mtu=1500, cir_bps=1_000_000, transport=transport, **ends)
            undo.callback(
                lambda vll=accepted.vll: customer.wait_completed(customer.remove(vll), timeout_s=WAIT_S)
            )
            customer.wait_completed(accepted.order, timeout_s=WAIT_S)
            lines[transport] = accepted.vll
        yield lines


def wait_for_state(lab: Lab, lines: dict[str, str], state: str) -> None:
    """Wait until every line and its path have this state."""
    customer = lab.stack.client("customer")
    shown: dict[str, Json] = {}

    def all_do() -> bool:
        shown.update({transport: customer.vll(vll) for transport, vll in lines.items()})
        return all(
            ((line["path"] or {}).get("state"), line["oper_status"]) == (state, f"op-{state}")
            for line in shown.values()
        )

    assert customer.wait(all_do, timeout_s=WAIT_S), {name: line["path"] for name, line in shown.items()}


@pytest.mark.parametrize(("near", "far"), [("rhino", "hippo"), ("hippo", "rhino")])
def test_lines_of_every_transport_are_down_while_one_direction_loses_all_frames(
    lab: Lab, lines: dict[str, str], near: str, far: str
) -> None:
    wait_for_state(lab, lines, "up")
    with BlackHole(lab.dataplane, near, far):
        wait_for_state(lab, lines, "down")
        line = lab.stack.client("customer").vll(lines["vxlan4"])
        assert line["path"]["message"].startswith("The path between rhino and hippo has been down since ")
    wait_for_state(lab, lines, "up")


def test_one_session_of_each_family_watches_them_all(lab: Lab, lines: dict[str, str]) -> None:
    wait_for_state(lab, lines, "up")
    for vpp in lab.dataplane.vpps.values():
        assert "Number of configured BFD sessions: 2" in vpp.show("show bfd sessions")
