"""A stand-in that plays another release of VPP for a while; only its message table shows the difference."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from devstack.routers.vppsim import SimulatedDataplane
from devstack.stack import Stack

GRE_KEYS = ["gre_tunnel_add_del_v2", "gre_tunnel_dump_v2"]
# Messages that the agent uses and 24.02 lacks; docs/routers/agent.md lists their uses.
BEFORE_24_06 = [
    *GRE_KEYS,
    "lcp_itf_pair_get_v2",
    "bfd_udp_enable_multihop",
    "pg_delete_interface",
    "feature_is_enabled",
    "pg_create_interface_v3",
]


@contextmanager
def without(stack: Stack, router: str, messages: list[str]) -> Iterator[None]:
    """Give the router a VPP without these messages for the block. Each VPP starts empty."""
    assert isinstance(stack.dataplane, SimulatedDataplane)
    file, vpp = stack.dataplane.folder / router / "vppsim.json", stack.family[f"vppsim-{router}"]
    before = file.read_text()

    def becomes(config: str) -> None:
        file.write_text(config)
        vpp.end()
        vpp.restart()

    becomes(json.dumps(json.loads(before) | {"without_messages": messages}))
    try:
        yield
    finally:
        becomes(before)
