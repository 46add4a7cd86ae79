"""The rows, the VPPs and the stand-ins come from one description of the ISP, so they agree."""

from collections import Counter
from pathlib import Path

import pytest

from devstack.isp import ALPINE_DAIRY, small_isp
from devstack.routers.vpp_network import commands_of
from devstack.routers.vppsim import config_of

ISP = small_isp()
AGENTS = [router.name for router in ISP.agents]


def test_rhino_and_hippo_are_neighbours_in_a_ring_of_at_least_five() -> None:
    assert AGENTS == ["rhino", "hippo"]
    assert len(ISP.links) == len(ISP.routers) >= 5
    ends = Counter(side.router for link in ISP.links for side in link.sides())
    assert set(ends.values()) == {2}
    assert ("rhino", "hippo") in {(link.a, link.z) for link in ISP.links}


def test_the_customer_has_two_ports_on_each_router_with_an_agent() -> None:
    for router in ISP.agents:
        assert sum(port.customer == ALPINE_DAIRY for port in router.ports) >= 2


def test_every_address_is_used_once() -> None:
    addresses = [a for router in ISP.routers for a in router.tunnel_addresses]
    addresses += [a.partition("/")[0] for link in ISP.links for side in link.sides() for a in side.addresses]
    assert [address for address, times in Counter(addresses).items() if times > 1] == []


def test_linux_accepts_every_interface_name() -> None:
    names = [port.linux for router in ISP.agents for port in router.ports if port.linux]
    names += [side.linux for link in ISP.links for side in link.sides()]
    assert all(len(name) <= 15 for name in names)


@pytest.mark.parametrize("name", AGENTS)
def test_vpp_and_the_stand_in_get_the_same_interfaces_addresses_and_routes(name: str) -> None:
    router = ISP.router(name)
    lines = [command.split() for command in commands_of(router, ISP)]
    config = config_of(router, ISP, Path("/run/underlay"))

    on_vpp = {"loop0"} | {f"host-{w[3]}" for w in lines if w[:3] == ["create", "host-interface", "name"]}
    addresses = {(w[4], w[5]) for w in lines if w[:4] == ["set", "interface", "ip", "address"]}
    routes = {w[3] for w in lines if w[:3] == ["ip", "route", "add"]}
    mtus = {w[5]: int(w[4]) for w in lines if w[:4] == ["set", "interface", "mtu", "packet"]}

    assert on_vpp == {each["name"] for each in config["interfaces"]}
    assert addresses == {(i["name"], a) for i in config["interfaces"] for a in i.get("addresses", ())}
    assert routes == {each["prefix"] for each in config["routes"]}
    backbone = {i["name"]: i["ip_mtu"] for i in config["interfaces"] if i["name"] in mtus}
    assert mtus == backbone
    assert len(backbone) == 2


def test_stand_ins_of_one_network_share_their_underlay() -> None:
    underlays = {config_of(router, ISP, Path("/run/underlay"))["underlay"] for router in ISP.agents}
    assert underlays == {"/run/underlay"}


def test_both_ends_route_to_all_tunnel_addresses_of_the_other() -> None:
    for here, there in (("rhino", "hippo"), ("hippo", "rhino")):
        routes = {line.split()[3] for line in commands_of(ISP.router(here), ISP) if "route add" in line}
        for address in ISP.router(there).tunnel_addresses:
            assert f"{address}/{128 if ':' in address else 32}" in routes
