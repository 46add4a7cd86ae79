"""The small ISP on real VPPs in unprivileged containers, without capabilities and interfaces of the host.

The VPPs are connected by memif: shared memory that they negotiate over sockets in a volume. An additional
VPP, the "world", is the far end of all other interfaces. It simulates the customers and the routers without
an agent.
"""

import struct
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import PurePath, PurePosixPath

from devstack.isp import Isp, Router
from devstack.routers import vpp
from devstack.routers.vpp_network import commands_of

# The mount point of the volume in docker-compose.yml.
RUN = PurePosixPath("/run/vpp")
WIRES = PurePosixPath("/run/wires")
# The customers' traffic: port, VLAN, frames per second, and bytes per frame.
PORT, VLAN = "cust1", 100
FRAMES_PER_S, FRAME_BYTES = 450, 1400
_BROADCAST = b"\xff" * 6
_EXPERIMENTAL = 0x88B5


def startup_conf(script: PurePath) -> str:
    """Return startup.conf with ``script`` as the configuration."""
    return vpp.startup_conf(RUN, "nosyslog", f"exec {script}", heap="256M", statistics="64M")


def router_script(router: Router, isp: Isp) -> list[str]:
    """Return the startup commands for a router's VPP. The interfaces have the names that the portal knows."""
    return commands_of(router, isp, attach=_memifs(router, isp))


def world_script(isp: Isp) -> list[str]:
    """Return the startup commands for the VPP that simulates the world."""
    commands: list[str] = []
    with_agents = {router.name for router in isp.agents}
    numbers = count(1)
    for router in isp.agents:
        far = [side.linux for side in isp.sides_of(router) if side.far not in with_agents]
        for linux in [*far, *(port.linux for port in router.ports if port.linux is not None)]:
            number = next(numbers)
            commands += _memif(number, wire=f"{router.name}-{linux}", role="slave")
            if linux == PORT:
                commands.append(_stream(router, f"memif{number}/0"))
    return [*commands, "packet-generator enable-stream"]


def _memifs(router: Router, isp: Isp) -> Callable[[str], list[str]]:
    """Return a function that returns the commands to create a memif.

    Each wire between two routers has its alphabetically first router as master. On a wire to the world, the
    router is the master.
    """
    between = {
        side.linux: sorted([router.name, side.far])
        for side in isp.sides_of(router)
        if isp.router(side.far).has_agent
    }
    numbers: Iterator[int] = count(1)

    def attach(linux: str) -> list[str]:
        ends = between.get(linux, [router.name, linux])
        number = next(numbers)
        role = "master" if ends[0] == router.name else "slave"
        return [
            *_memif(number, wire="-".join(ends), role=role),
            f"set interface name memif{number}/0 host-{linux}",
        ]

    return attach


def _memif(number: int, *, wire: str, role: str) -> list[str]:
    name = f"memif{number}/0"
    # Each buffer of the ring has room for one jumbo frame. The slave decides the size.
    size = " buffer-size 10240" if role == "slave" else ""
    return [
        f"create memif socket id {number} filename {WIRES}/{wire}.sock",
        f"create interface memif id 0 socket-id {number} {role}{size} no-zero-copy",
        f"set interface state {name} up",
        f"set interface rx-mode {name} interrupt",
    ]


def _stream(router: Router, interface: str) -> str:
    head = (
        _BROADCAST + bytes([2, 0, 0, 0, 0, router.number]) + struct.pack("!HHH", 0x8100, VLAN, _EXPERIMENTAL)
    )
    sizes = f"{FRAME_BYTES}-{FRAME_BYTES}"
    return (
        f"packet-generator new {{ name customer-{router.name} rate {FRAMES_PER_S} size {sizes}"
        f" node {interface} data {{ hex 0x{head.hex()} }} }}"
    )
