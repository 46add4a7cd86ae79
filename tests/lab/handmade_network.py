"""A handmade network of two routers: complete lines, three irregular lines, and objects of vppcfg."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache

from devstack.isp import small_isp
from devstack.routers.vpp import Vpp
from devstack.traffic import frame
from drills.checks.vpptestctl import VppRefused, VppTestctl
from tests.lab.combinations import SELECTING, STATIONS, Tag
from tests.lab.conftest import MEMIF_PORTS

_POPS = {1: "pop 1", 2: "pop 2"}
_INNER = {"a": 11, "z": 22}
_ROUTERS = {"a": "rhino", "z": "hippo"}
# Objects as vppcfg makes them, an address and a bridge. The portal must not adopt them.
_VPPCFGS_OWN = (
    "create loopback interface instance 77",
    "set interface state loop77 up",
    "set interface ip address loop77 192.0.2.77/32",
    "set interface tag loop77 vppcfg-loop",
    "create loopback interface instance 78",
    "set interface l2 bridge loop78 78 bvi",
    "create sub-interfaces host-cust3 3999 dot1q 3999 exact-match",
    "set interface state host-cust3.3999 up",
    "set interface ip address host-cust3.3999 198.51.100.1/30",
)
_VPPCFGS_OWN_UNDONE = (
    "delete sub-interface host-cust3.3999",
    "set interface l3 loop78",
    "create bridge-domain 78 del",
    "delete loopback interface intfc loop78",
    "delete loopback interface intfc loop77",
)


@dataclass(frozen=True, slots=True)
class HandmadeLine:
    """A line that was configured by hand. ``odd`` says what is wrong on purpose, "" if nothing is."""

    number: int
    transport: str
    tagging: str
    port: str = "host-cust1"
    odd: str = ""

    def __str__(self) -> str:
        return f"line {self.number} ({self.transport}, {self.tagging})"

    @property
    def name(self) -> str:
        return f"Handmade {self.number}"

    @property
    def router(self) -> dict[str, str]:
        return {"a": "rhino", "z": "rhino"} if self.transport == "l2xc" else _ROUTERS

    @property
    def key(self) -> int:
        return 5000 + self.number

    def place(self, side: str) -> tuple[str, str]:
        """Return router and port of this side."""
        return self.router[side], self.port

    def outer(self, side: str) -> int:
        return {"a": 1000, "z": 2000}[side] + self.number

    def access(self, side: str) -> str:
        return self.port if self.tagging == "untagged" else f"{self.port}.{self.outer(side)}"

    def interfaces(self, side: str) -> list[str]:
        """Return the interface names in VPP. The tunnel's name follows from its VNI."""
        assert self.transport.startswith("vxlan")
        return [self.access(side), f"vxlan_tunnel{self.key}"]

    def on_the_wire(self, *, of: str, at: str, payload: bytes) -> bytes:
        """Return the frame that carries ``payload`` from side ``of``, as it appears on side ``at``."""
        return _header(self, of, at) + payload

    def make(self, vpps: Mapping[str, Vpp]) -> None:
        accesses = {side: self._make_access(vpps[self.router[side]], side) for side in "az"}
        if self.transport == "l2xc":
            _join(vpps["rhino"], accesses["a"], accesses["z"])
            return
        for side, far in (("a", "z"), ("z", "a")):
            vpp = vpps[self.router[side]]
            tunnel = self._make_tunnel(vpp, side, far)
            _join(vpp, accesses[side], tunnel, back=not (self.odd == "one way" and side == "a"))

    def _make_access(self, vpp: Vpp, side: str) -> str:
        access, kinds = self.access(side), SELECTING[self.tagging]
        if kinds:
            outer = "dot1ad" if self.tagging == "dot1ad" else "dot1q"
            inner = f" inner-dot1q {_INNER[side]}" if len(kinds) == 2 else ""
            number = self.outer(side)
            vpp.configure(f"create sub-interfaces {self.port} {number} {outer} {number}{inner} exact-match")
        vpp.configure(f"set interface state {access} up")
        if self.number % 2:
            vpp.configure(f"set interface tag {access} by-hand-{self.number}")
        return access

    def _make_tunnel(self, vpp: Vpp, side: str, far: str) -> str:
        if self.transport.startswith("gre"):
            tunnel = VppTestctl(vpp.sockets.api).add_gre(*self._outer_addresses(side, far), self.key)
        else:
            tunnel = vpp.show(self._tunnel(side, far)).strip()
        vpp.configure(f"set interface state {tunnel} up")
        return tunnel

    def _outer_addresses(self, side: str, far: str) -> tuple[str, str]:
        family = self.transport[-1]
        return _loopback(self.router[side], family), _loopback(self.router[far], family)

    def _tunnel(self, side: str, far: str) -> str:
        here, there = self._outer_addresses(side, far)
        key = self.key + (500 if self.odd == "other VNI" and side == "z" else 0)
        return {
            "vxlan": f"create vxlan tunnel src {here} dst {there} vni {key} instance {key}",
            "geneve": f"create geneve tunnel local {here} remote {there} vni {key}",
        }[self.transport[:-1]]

    def finish(self, vpps: Mapping[str, Vpp]) -> None:
        """Pop the VLAN tags of received frames. VPP does so only on cross-connected interfaces."""
        count = len(SELECTING[self.tagging])
        for side in "az" if count else "":
            if not (self.odd == "keeps tags" and side == "a"):
                vpps[self.router[side]].configure(
                    f"set interface l2 tag-rewrite {self.access(side)} {_POPS[count]}"
                )

    def unmake(self, vpps: Mapping[str, Vpp]) -> None:
        """Delete the objects of the line that still exist. VPP's errors about missing ones are ignored."""
        for side, far in (("a", "z"), ("z", "a")):
            vpp = vpps[self.router[side]]
            vpp.show(f"set interface l3 {self.access(side)}")
            if self.tagging != "untagged":
                vpp.show(f"delete sub-interface {self.access(side)}")
            if self.transport.startswith("gre"):
                with suppress(VppRefused):
                    VppTestctl(vpp.sockets.api).delete_tunnel(f"gre{self.key}")
            elif self.transport != "l2xc":
                vpp.show(f"{self._tunnel(side, far)} del")


@cache
def _header(line: HandmadeLine, of: str, at: str) -> bytes:
    vlans = (line.outer(at), _INNER[at])
    tags = [Tag(vlan, tpid) for tpid, vlan in zip(SELECTING[line.tagging], vlans, strict=False)]
    return frame(destination=STATIONS["z" if of == "a" else "a"], source=STATIONS[of], tags=tags, payload=b"")


def _join(vpp: Vpp, access: str, far: str, *, back: bool = True) -> None:
    vpp.configure(f"set interface l2 xconnect {access} {far}")
    if back:
        vpp.configure(f"set interface l2 xconnect {far} {access}")


def _loopback(router: str, family: str) -> str:
    found = small_isp().router(router)
    return found.loopback6 if family == "6" else found.loopback4


def handmade_lines(count: int) -> list[HandmadeLine]:
    """Return lines of all seven encapsulations and all four taggings; the last three are irregular.

    With a ``count`` of at least 18, one line is VXLAN with qinq. GRE without keys allows one tunnel between
    two addresses. Ports behind VPP's host-interface carry no 802.1ad.
    """
    kinds = [
        ("vxlan4", "untagged", "host-cust2"),
        ("gre4", "dot1q", "host-cust1"),
        ("gre6", "qinq", "host-cust1"),
    ]
    by_vni = ("vxlan4", "vxlan6", "geneve4", "geneve6")
    kinds += [(transport, "dot1ad", MEMIF_PORTS[0]) for transport in by_vni]
    kinds += [("l2xc", tagging, "host-cust1") for tagging in ("dot1q", "qinq", "dot1q")]
    odd = ("one way", "other VNI", "keeps tags")
    left = count - len(odd) - len(kinds)
    kinds += [(by_vni[n % 4], ("dot1q", "qinq")[n // 4 % 2], "host-cust1") for n in range(left)]
    lines = [HandmadeLine(n, *kind) for n, kind in enumerate(kinds)]
    return lines + [
        HandmadeLine(len(lines) + n, "vxlan4", "dot1q", "host-cust1", each) for n, each in enumerate(odd)
    ]


def vppcfg_file(lines: list[HandmadeLine], side: str) -> str:
    """Return a vppcfg file with its names for the interfaces of one router."""
    rows = ["interfaces:"]
    for port in sorted({line.port for line in lines}):
        rows.append(f"  {port}:")
        whole = next((line for line in lines if line.port == port and line.tagging == "untagged"), None)
        rows += [f'    description: "{whole.name}"'] if whole else ["    sub-interfaces:"]
        for line in lines:
            if line.port == port and line.tagging != "untagged" and line.router[side] == _ROUTERS[side]:
                rows += [f"      {line.outer(side)}:", f'        description: "{line.name}"']
    return "\n".join(rows) + "\n"


@contextmanager
def laid(vpps: Mapping[str, Vpp], lines: list[HandmadeLine]) -> Iterator[None]:
    """Configure the lines and vppcfg's own objects for the block, and delete the rest afterwards."""
    try:
        for vpp in vpps.values():
            vpp.show("create bridge-domain 78 learn 1")
            vpp.configure(*_VPPCFGS_OWN)
        for line in lines:
            line.make(vpps)
            line.finish(vpps)
        yield
    finally:
        for line in lines:
            line.unmake(vpps)
        for vpp in vpps.values():
            for command in _VPPCFGS_OWN_UNDONE:
                vpp.show(command)
