"""The storm removes released lines as their owner would, before it compares a VPP with its first state."""

from typing import Any, cast
from uuid import UUID

import pytest

from drills.chaos.routers import Routers
from drills.chaos.run import Chaos
from drills.chaos.verdict import Verdict
from drills.checks.expected_configuration import End
from drills.checks.vpptestctl import VppConfig

PORT = {"index": 4, "parent": 4, "name": "memif4/0", "tags": 0, "admin_up": False, "tag": ""}
TUNNEL = {"index": 9, "parent": 9, "name": "vxlan_tunnel0", "tags": 0, "admin_up": True, "tag": ""}
SHOWN = {
    "interfaces": [PORT, TUNNEL],
    "connects": [{"from": 4, "to": 9}, {"from": 9, "to": 4}],
    "tunnels": [
        {"kind": "vxlan4", "local": "10.0.0.1", "remote": "10.0.0.2", "vni": 7, "gre_key": 0, "index": 9}
    ],
}


class Owner:
    """A router that does nothing and records the requested actions."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def config(self) -> VppConfig:
        return VppConfig(SHOWN)

    def __getattr__(self, what: str) -> Any:
        return lambda name: self.did.append(f"{what} {name}")


def whole_port(admin_status: str) -> End:
    return End(
        vll=UUID(int=1),
        side="a",
        revision=2,
        lifecycle="terminated",
        admin_status=admin_status,
        router="rhino",
        interface="memif4/0",
        tagging="untagged",
        outer=None,
        inner=None,
        encapsulation="vxlan4",
        vni=7,
        gre_key=None,
        local="10.0.0.1",
        remote="10.0.0.2",
    )


@pytest.mark.parametrize(
    ("admin_status", "port"), [("admin-up", []), ("admin-down", ["up memif4/0"])], ids=["served", "suspended"]
)
def test_the_port_of_a_suspended_line_is_set_up_again(admin_status: str, port: list[str]) -> None:
    owner = Owner()

    class Surroundings:
        def past_the_agent(self, router: str) -> Owner:
            return owner

        def released_ends(self) -> list[End]:
            return [whole_port(admin_status)]

    surroundings = Surroundings()
    chaos = Chaos(
        plan=cast("Any", None),
        timeline=cast("Any", None),
        stack=cast("Any", None),
        routers=cast("Routers", surroundings),
        storm=cast("Any", None),
        verdict=cast("Verdict", surroundings),
    )
    chaos._remove_released()
    assert owner.did == [
        "disconnect memif4/0",
        "disconnect vxlan_tunnel0",
        *port,
        "delete_tunnel vxlan_tunnel0",
    ]
