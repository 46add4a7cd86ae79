"""The small ISP over memif: wires with two ends, the interfaces of the portal, and no privileges."""

import re
from collections import defaultdict
from pathlib import PurePosixPath

import pytest

from devstack.containers import VLAN, router_script, startup_conf, world_script
from devstack.isp import Router, small_isp
from devstack.routers.vpp_network import commands_of

ISP = small_isp()
SCRIPTS = {router.name: router_script(router, ISP) for router in ISP.agents} | {"world": world_script(ISP)}


def test_each_wire_has_one_master_and_one_slave_in_two_vpps() -> None:
    wires: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, script in SCRIPTS.items():
        files = dict(
            re.findall(r"create memif socket id (\d+) filename /run/wires/(\S+)\.sock", "\n".join(script))
        )
        for number, role in re.findall(
            r"create interface memif id 0 socket-id (\d+) (master|slave)", "\n".join(script)
        ):
            wires[files[number]].append((role, name))
    assert all(sorted(role for role, _ in ends) == ["master", "slave"] for ends in wires.values())
    assert all(len({name for _, name in ends}) == 2 for ends in wires.values())
    assert {frozenset(name for _, name in ends) for ends in wires.values()} == {
        frozenset(pair) for pair in (("rhino", "hippo"), ("rhino", "world"), ("hippo", "world"))
    }


@pytest.mark.parametrize("router", ISP.agents, ids=lambda router: router.name)
def test_a_router_has_the_interfaces_and_the_underlay_of_the_lab(router: Router) -> None:
    def named(script: list[str]) -> set[str]:
        return set(
            re.findall(r"(?:host-interface name |set interface name \S+ host-)(\S+)", "\n".join(script))
        )

    def underlay(script: list[str]) -> list[str]:
        return [line for line in script if "memif" not in line and "host-interface" not in line]

    lab = commands_of(router, ISP)
    script = SCRIPTS[router.name]
    assert named(script) == named(lab)
    assert underlay(script) == [
        line for line in underlay(lab) if not line.startswith("set interface state host-")
    ]


def test_both_customers_of_the_demonstrations_line_send_its_vlan() -> None:
    streams = [line for line in SCRIPTS["world"] if line.startswith("packet-generator new")]
    heads = [re.search(r"hex 0x(\w+)", line) for line in streams]
    assert [head and head[1][24:32] for head in heads] == [f"8100{VLAN:04x}"] * 2
    assert SCRIPTS["world"][-1] == "packet-generator enable-stream"


def test_no_interface_polls_and_no_hugepage_is_requested() -> None:
    for script in SCRIPTS.values():
        memifs = sum(line.startswith("create interface memif") for line in script)
        assert (
            sum(line.startswith("set interface rx-mode memif") and "interrupt" in line for line in script)
            == memifs
        )
    conf = startup_conf(PurePosixPath("/demo/rhino.vpp"))
    assert re.findall(r"page-size (\S+)", conf) == ["4K", "4K"]
    assert "plugin dpdk_plugin.so { disable }" in conf
