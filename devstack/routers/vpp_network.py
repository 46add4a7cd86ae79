"""The small ISP on real VPPs. Each router and each customer port has a namespace. veth pairs connect them.

Customers are Linux namespaces without VPP. A frame from one customer to the other passes two VPPs.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from devstack.isp import BACKBONE_IP_MTU, Isp, Router, Side
from devstack.process import Family
from devstack.routers import netns
from devstack.routers.agent import Sockets
from devstack.routers.vpp import Installation, Vpp
from devstack.routers.vppsim import host_prefix

# The name of each port's interface on the customer's side.
UNI = "uni"
# More than the largest UNI frame (9022 bytes): AF_PACKET allows 4 more for 0x8100, but not for 0x88a8.
VETH_MTU = 9030
# One jumbo frame per transmit slot. This locks 2.6 MB of memory; VPP's default locks up to 69 MB.
TRANSMIT_RING = "tx-size 10240 tx-per-block 256"


@dataclass
class VppDataplane:
    installation: Installation
    isp: Isp
    folder: Path
    logs: Path
    family: Family
    vpps: dict[str, Vpp] = field(default_factory=dict)
    # The namespace of each customer, keyed by (router, interface of the port).
    customers: dict[tuple[str, str], str] = field(default_factory=dict)
    router_namespaces: dict[str, str] = field(default_factory=dict)
    # The namespace of the switches inside the cables, and the interfaces by which two switches are connected.
    switches: str = ""
    trunks: list[str] = field(default_factory=list)
    _namespaces: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        """Create the cables and return this network."""
        with ExitStack() as undo:
            for router in self.isp.agents:
                self.router_namespaces[router.name] = undo.enter_context(netns.namespace(router.name))
            far_end = undo.enter_context(netns.namespace("far"))
            self.switches = undo.enter_context(netns.namespace("switches"))
            for link in self.isp.links:
                a, z = link.sides()
                self._cable(a, z, far_end)
            for router in self.isp.agents:
                for port in router.ports:
                    if port.linux is not None:
                        customer = undo.enter_context(netns.namespace(f"{router.name}-{port.linux}"))
                        self.customers[router.name, port.interface] = customer
                        netns.veth(
                            (self.router_namespaces[router.name], port.linux), (customer, UNI), mtu=VETH_MTU
                        )
            self._namespaces = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._namespaces.close()

    def _cable(self, a: Side, z: Side, far_end: str) -> None:
        """Connect two sides of a link. A side without a VPP ends in a namespace that sends nothing.

        Between two VPPs there are two switches. Both VPPs know nothing about them.
        """
        ends = [
            (self.router_namespaces[side.router], side.linux)
            if side.router in self.router_namespaces
            else (far_end, f"{side.router}-{side.far}")
            for side in (a, z)
        ]
        if all(where != far_end for where, _ in ends):
            trunk = [f"{side.router}-trunk" for side in (a, z)]
            netns.veth(*((self.switches, end) for end in trunk), mtu=VETH_MTU)
            for end, port, side in zip(ends, trunk, (a, z), strict=True):
                access = f"{side.router}-access"
                netns.veth(end, (self.switches, access), mtu=VETH_MTU)
                netns.bridge(self.switches, f"{side.router}-switch", [access, port])
            self.trunks += trunk
        elif any(where != far_end for where, _ in ends):
            netns.veth(ends[0], ends[1], mtu=VETH_MTU)

    @contextmanager
    def narrow(self, ip_mtu: int) -> Iterator[None]:
        """As long as the context lasts, the switches between two VPPs silently drop IP packets that are
        larger than ``ip_mtu`` bytes.
        """
        self._set_trunk_mtu(ip_mtu)
        try:
            yield
        finally:
            self._set_trunk_mtu(VETH_MTU)

    def _set_trunk_mtu(self, mtu: int) -> None:
        for end in self.trunks:
            netns.set_mtu(self.switches, end, mtu)

    @property
    def name(self) -> str:
        versions = sorted({vpp.version() for vpp in self.vpps.values()})
        return f"vpp {', '.join(versions)}"

    def start(self, router: Router) -> Sockets:
        vpp = Vpp(
            installation=self.installation,
            label=router.name,
            folder=self.folder / router.name,
            logs=self.logs,
            namespace=self.router_namespaces[router.name],
            turn=router.number,
        )
        vpp.start(self.family)
        vpp.configure(*commands_of(router, self.isp))
        self.vpps[router.name] = vpp
        return vpp.sockets


UNKNOWN_MAC = "02:00:00:00:de:ad"


class BlackHole:
    """A context in which frames from one router to its neighbour get a MAC address of no interface."""

    def __init__(self, dataplane: VppDataplane, near: str, far: str) -> None:
        side = next(side for side in dataplane.isp.sides_of(dataplane.isp.router(near)) if side.far == far)
        self._vpp = dataplane.vpps[near]
        next_hops = [address.partition("/")[0] for address in side.far_addresses]
        self._neighbours = [f"{side.interface} {address} {UNKNOWN_MAC}" for address in next_hops]

    def __enter__(self) -> None:
        self._vpp.configure(*(f"set ip neighbor static {neighbour}" for neighbour in self._neighbours))

    def __exit__(self, *_: object) -> None:
        self._vpp.configure(*(f"set ip neighbor del static {neighbour}" for neighbour in self._neighbours))


def host_interface(linux: str) -> list[str]:
    """Return the commands that attach the Linux interface with this name as host-<name>."""
    return [
        f"create host-interface name {linux} {TRANSMIT_RING} cksum-gso-disable",
        f"set interface state host-{linux} up",
    ]


def commands_of(
    router: Router, isp: Isp, *, attach: Callable[[str], list[str]] = host_interface
) -> list[str]:
    """Return VPP's commands for a router: loopback, backbone, routes to its neighbours, and customer ports.

    ``attach`` returns the commands that create host-<name> and set it up.
    """
    commands = ["create loopback interface instance 0", "set interface state loop0 up"]
    commands += [f"set interface ip address loop0 {host_prefix(a)}" for a in router.tunnel_addresses]
    for side in isp.sides_of(router):
        commands += attach(side.linux)
        commands.append(f"set interface mtu packet {BACKBONE_IP_MTU} {side.interface}")
        commands += [f"set interface ip address {side.interface} {address}" for address in side.addresses]
        next_hops = [address.partition("/")[0] for address in side.far_addresses]
        for address in isp.router(side.far).tunnel_addresses:
            next_hop = next_hops[":" in address]
            commands.append(f"ip route add {host_prefix(address)} via {next_hop} {side.interface}")
    for port in router.ports:
        commands += attach(port.linux) if port.linux is not None else []
    return commands
