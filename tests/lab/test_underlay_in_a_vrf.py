"""Tunnels between two real VPPs whose loopbacks and backbone are in table 10."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devstack.client import Client, Json
from devstack.isp import Router
from devstack.routers.vpp import Vpp
from devstack.routers.vppsim import host_prefix
from tests.lab.abilities import Ability
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import CIR_BPS, WAIT_S, in_service, pass_both_ways

TABLE = 10
LINES = [Combination(transport, "dot1q") for transport in ("vxlan4", "geneve4", "gre4", "vxlan6")]


def move(lab: Lab, name: str, *, before: int, after: int) -> None:
    """Move the router's loopback and backbone into another table, as its operator would."""
    vpp, isp = lab.dataplane.vpps[name], lab.dataplane.isp
    router = isp.router(name)
    sides = isp.sides_of(router)
    addresses = {"loop0": [host_prefix(each) for each in router.tunnel_addresses]}
    addresses |= {side.interface: list(side.addresses) for side in sides}
    routes = [
        (host_prefix(address), side.far_addresses[":" in address].partition("/")[0], side.interface)
        for side in sides
        for address in isp.router(side.far).tunnel_addresses
    ]
    for prefix, hop, interface in routes:
        vpp.configure(f"ip route del {prefix} table {before} via {hop} {interface}")
    for interface, prefixes in addresses.items():
        vpp.configure(
            *(f"set interface ip address del {interface} {each}" for each in prefixes),
            f"set interface ip table {interface} {after}",
            f"set interface ip6 table {interface} {after}",
            *(f"set interface ip address {interface} {each}" for each in prefixes),
        )
    for prefix, hop, interface in routes:
        vpp.configure(f"ip route add {prefix} table {after} via {hop} {interface}")


def lead_into(vpp: Vpp, router: Router, *, action: str) -> None:
    """Make table 0 find the router's addresses in table 10, or undo it. VPP's BFD uses table 0."""
    for address in router.tunnel_addresses:
        family = "ip6" if ":" in address else "ip4"
        vpp.configure(f"ip route {action} {host_prefix(address)} via {family}-lookup-in-table {TABLE}")


@pytest.fixture(scope="module")
def vrf(lab: Lab) -> Iterator[Lab]:
    """Yield the lab with the underlay of both routers in table 10, in VPP and in the portal."""
    noc, isp = lab.stack.client("noc"), lab.dataplane.isp
    with ExitStack() as undo:
        for name, vpp in lab.dataplane.vpps.items():
            vpp.configure(f"ip table add {TABLE}", f"ip6 table add {TABLE}")
            move(lab, name, before=0, after=TABLE)
            undo.callback(move, lab, name, before=TABLE, after=0)
            noc.change_router(noc.router(name), underlay_table=TABLE)
            undo.callback(noc.change_router, noc.router(name), underlay_table=0)
            far = next(each for each in isp.routers if each.name != name)
            lead_into(vpp, far, action="add")
            undo.callback(lead_into, vpp, far, action="del")
        # Wait until both agents have reported the tables of their addresses.
        assert noc.wait(lambda: not _hindrances(lab), timeout_s=WAIT_S), _hindrances(lab)
        yield lab


@pytest.mark.parametrize("line", LINES, ids=str)
def test_frames_pass_in_the_table(vrf: Lab, line: Combination) -> None:
    """The order waits until both agents report their addresses in the table.

    Its activation test passes.
    """
    customer = vrf.stack.client("customer")
    with in_service(vrf, line) as vll:
        for vpp in vrf.dataplane.vpps.values():
            assert "fib-idx 0" not in "".join(
                vpp.show(f"show {kind} tunnel") for kind in ("vxlan", "geneve", "gre")
            )
        if vrf.can(Ability.PATH_WATCH):
            assert customer.wait(lambda: _path(vrf, vll) == "up", timeout_s=WAIT_S)


def loopback_into(lab: Lab, name: str, table: int) -> None:
    """Move only the router's loopback into a table; its links and routes are elsewhere."""
    prefixes = [host_prefix(each) for each in lab.dataplane.isp.router(name).tunnel_addresses]
    lab.dataplane.vpps[name].configure(
        *(f"set interface ip address del loop0 {each}" for each in prefixes),
        f"set interface ip table loop0 {table}",
        f"set interface ip6 table loop0 {table}",
        *(f"set interface ip address loop0 {each}" for each in prefixes),
    )


def test_a_line_whose_address_leaves_the_table_is_down_and_gives_the_reason(vrf: Lab) -> None:
    line, noc = Combination("vxlan4", "dot1q"), vrf.stack.client("noc")
    with in_service(vrf, line) as vll:
        loopback_into(vrf, "hippo", 0)
        try:
            assert noc.wait(lambda: noc.vll(vll)["oper_status"] == "op-down", timeout_s=WAIT_S)
            # The watched path notices first; the agent's next report names the interface.
            assert noc.wait(lambda: _differences(noc, vll) >= {"loop0", "'table'"}, timeout_s=WAIT_S)
        finally:
            loopback_into(vrf, "hippo", TABLE)
        assert noc.wait(lambda: noc.vll(vll)["oper_status"] == "op-up", timeout_s=WAIT_S)
        pass_both_ways(vrf, line)


def _differences(noc: Client, vll: str) -> set[str]:
    """Return which of two expected phrases the Z end's list of differences contains."""
    [check] = [each for each in noc.diagnosis(vll)["checks"] if each["code"] == "z_configuration"]
    return {phrase for phrase in ("loop0", "'table'") if phrase in check["detail"]}


def _hindrances(lab: Lab) -> list[Json]:
    """Return what currently prevents the lines of this test."""
    found = []
    for line in LINES:
        at = lab.ends(line.transport, line.tagging)
        ends = {f"{side}_end": line.end(side, lab.stack.port(*at[side])) for side in ("a", "z")}
        answer = lab.stack.client("customer").validate(
            svc_mtu=1500, transport=line.transport, cir_bps=CIR_BPS, **ends
        )
        found += [answer] if not answer["feasible"] else []
    return found


def _path(lab: Lab, vll: str) -> str:
    return str((lab.stack.client("noc").vll(vll)["path"] or {}).get("state"))
