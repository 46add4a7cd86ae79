"""The stand-in for VPP, with real sockets and synthetic counters. It forwards only frames of tests."""

import json
from dataclasses import dataclass
from pathlib import Path

from devstack.folders import BUILD
from devstack.isp import BACKBONE_IP_MTU, Isp, Router
from devstack.process import Child, Family
from devstack.routers.agent import Sockets

TRAFFIC = {"rate_bps": 20_000_000, "frame_bytes": 700}


@dataclass(frozen=True)
class SimulatedDataplane:
    isp: Isp
    folder: Path
    logs: Path
    family: Family
    name: str = "vppsim"
    # Whether the customers of lines with a rate below TRAFFIC send more than this rate.
    exceeds: bool = False

    def start(self, router: Router) -> Sockets:
        # Each stand-in has a separate folder, because the agent locks the folder of VPP's API socket.
        folder = self.folder / router.name
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "vppsim.json"
        content = config_of(router, self.isp, self.folder / "underlay", exceeds=self.exceeds)
        config.write_text(json.dumps(content, indent=1))
        sockets = Sockets(folder / "api.sock", folder / "stats.sock", folder / "cli.sock")
        argv = [f"{BUILD}/vppsim", f"-api-socket={sockets.api}", f"-stats-socket={sockets.stats}"]
        argv += [f"-cli-socket={sockets.cli}", f"-config={config}"]
        name = f"vppsim-{router.name}"
        child = Child(name=name, argv=argv, log=self.logs / f"{name}.log")
        self.family.start(child).wait_until(lambda: sockets.api.exists() and sockets.stats.exists())
        return sockets


def config_of(router: Router, isp: Isp, underlay: Path, *, exceeds: bool = False) -> dict[str, object]:
    """Return the stand-in's configuration.

    It has the interfaces, addresses and routes that ``devstack.routers.vpp_network`` gives to a VPP.

    The stand-ins exchange the frames of activation tests through the folder `underlay`.
    """
    sides = isp.sides_of(router)
    interfaces: list[dict[str, object]] = [
        {"name": "loop0", "addresses": [host_prefix(address) for address in router.tunnel_addresses]}
    ]
    interfaces += [
        {"name": side.interface, "ip_mtu": BACKBONE_IP_MTU, "addresses": list(side.addresses)}
        for side in sides
    ]
    interfaces += [{"name": port.interface, "ip_mtu": 9000} for port in router.ports]
    far_routers = (isp.router(side.far) for side in sides)
    routes = [{"prefix": host_prefix(a)} for far in far_routers for a in far.tunnel_addresses]
    traffic = {**TRAFFIC, "exceeds": exceeds}
    return {"interfaces": interfaces, "routes": routes, "traffic": traffic, "underlay": str(underlay)}


def host_prefix(address: str) -> str:
    return f"{address}/128" if ":" in address else f"{address}/32"
