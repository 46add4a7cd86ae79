"""A line over real VPPs of any release shows which tests and watches it has, or why it has none."""

import pytest

from devstack.client import Json
from devstack.traffic import Wire
from tests.lab.abilities import Ability
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import CIR_BPS, WAIT_S, in_service, ordered, pass_both_ways

LINE = Combination("vxlan4", "dot1q")
# One VLAN for each line, different from those of other tests.
FIRST_VLAN = 3100


def test_a_line_shows_whether_it_is_tested_watched_and_policed(lab: Lab) -> None:
    customer = lab.stack.client("customer")
    with in_service(lab, LINE) as vll:
        [tested] = customer.tests(vll)
        if lab.can(Ability.ACTIVATION_TESTS):
            assert (tested["state"], tested["reason"]) == ("passed", None)
        else:
            assert (tested["state"], tested["reason"]) == ("not_tested", "router-cannot")
            assert tested["message"].startswith("hippo, rhino cannot send test frames")
        line: Json = {}

        def settled() -> bool:
            """Return whether agents have reported; until then every line shows that it is not watched."""
            line.update(customer.vll(vll))
            path = line["path"]
            watched_or_never = (
                path["state"] == "up"
                if lab.can(Ability.PATH_WATCH)
                else path["message"].endswith("not watched: rhino cannot watch paths.")
            )
            # By routes and links, where no path watch runs.
            return watched_or_never and line["policed"] and line["oper_status"] == "op-up"

        assert customer.wait(settled, timeout_s=WAIT_S), (line["path"], line["a_end"], line["z_end"])
        lab.report.append(
            f"lab {LINE} on {lab.dataplane.name}: {tested['state']}: {tested['message']};"
            f" {line['path']['message']}; policed"
        )


def test_gre_lines_with_keys_at_both_ends_share_one_pair_of_addresses(lab: Lab) -> None:
    customer = lab.stack.client("customer")
    lines = []
    for vlan in (FIRST_VLAN, FIRST_VLAN + 1):
        end = {"tagging": "dot1q", "outer_vlan": vlan, "inner_vlan": None, "exact_match": True}
        ends = {
            f"{side}_end": end | {"port": lab.stack.port(router, "host-cust1")}
            for side, router in (("a", "rhino"), ("z", "hippo"))
        }
        accepted = customer.order(svc_mtu=1500, cir_bps=CIR_BPS, transport="gre4", **ends)
        customer.wait_completed(accepted.order, timeout_s=WAIT_S)
        lines.append(customer.vll(accepted.vll))
    pairs = {(line["a_end"]["tunnel_address"], line["z_end"]["tunnel_address"]) for line in lines}
    keys = {line["gre_key"] for line in lines}
    for line in lines:
        customer.wait_completed(customer.remove(line["id"]), timeout_s=WAIT_S)
    if lab.can(Ability.GRE_KEYS):
        assert (len(pairs), len(keys - {None})) == (1, 2)
    else:
        assert (len(pairs), keys) == (2, {None})
    lab.report.append(
        f"lab on {lab.dataplane.name}: two GRE lines: keys {keys}, {len(pairs)} pairs of addresses"
    )


def received(wire: Wire) -> list[bytes]:
    frames = []
    while (whole := wire.receive(timeout_s=0.5)) is not None:
        frames.append(whole)
    return frames


@pytest.mark.parametrize("line", [Combination("vxlan4", "untagged"), Combination("gre6", "dot1q")], ids=str)
def test_no_test_frame_reaches_a_customer(lab: Lab, line: Combination) -> None:
    lab.needs(Ability.ACTIVATION_TESTS)
    customer, ends = lab.stack.client("customer"), lab.ends(line.transport, line.tagging)
    wires = [lab.wire(*where) for where in ends.values()]

    def arrived() -> list[bytes]:
        return [whole for wire in wires for whole in received(wire)]

    arrived()
    with ordered(lab, line, svc_mtu=1500) as accepted:
        assert [customer.tests(accepted.vll)[0]["state"], arrived()] == ["passed", []]
        pass_both_ways(lab, line)  # the wires would have captured test frames
        arrived()
        customer.wait_completed(customer.test(accepted.vll)["order"], timeout_s=WAIT_S)
        assert [customer.tests(accepted.vll)[0]["state"], arrived()] == ["passed", []]
    lab.report.append(f"lab {line}: tested twice, and none of the frames reached a customer")
