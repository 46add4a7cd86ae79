"""How long one agent takes for 1,000 VLLs, from the portal's PUT to its verified answer.

On a real VPP where one is installed, else on the stand-in; the note says which.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from bench.figures import Figure
from devstack import netns, vpp
from devstack.agent import Agent
from devstack.dataplane import Dataplane
from devstack.isp import Isp, small_isp
from devstack.ports import LOOPBACK, free_ports
from devstack.process import Family
from devstack.vpp_network import VppDataplane
from devstack.vppsim import SimulatedDataplane
from portal.core.clock import now
from portal.inventory.identity import PORTAL_URI, router_uri
from provisioning.peer_check import router_context
from provisioning.pki import authority_create, certificate_issue

VLLS = 1_000
ROUTER, FAR = "rhino", "hippo"
FRAME = 1514


def measure() -> Iterator[Figure]:
    isp = small_isp()
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ll-bench-")))
        family = Family()
        dataplane = _dataplane(isp, folder, family, undo)
        undo.enter_context(family)
        agent = _agent(folder)
        agent.start(family, dataplane.start(isp.router(ROUTER)))
        http = undo.enter_context(_client(agent))
        first, grown = _intent(isp, 1, VLLS), _intent(isp, 2, VLLS + 1)
        for name, document in (
            ("agent_converge_1000_ms", first),
            ("agent_resync_1000_ms", first),
            ("agent_add_1_of_1000_ms", grown),
        ):
            yield Figure(name, _put(http, document), "ms", dataplane.name)


def _dataplane(isp: Isp, folder: Path, family: Family, undo: ExitStack) -> Dataplane:
    try:
        installation = vpp.find()
    except vpp.NotInstalled:
        return SimulatedDataplane(isp=isp, folder=folder, logs=folder, family=family)
    netns.remove_leftovers()
    return undo.enter_context(
        VppDataplane(installation=installation, isp=isp, folder=folder, logs=folder, family=family)
    )


def _agent(folder: Path) -> Agent:
    pki = folder / "pki"
    authority = authority_create(pki, now=now())
    for file_name, uri in (("portal", PORTAL_URI), (f"router-{ROUTER}", router_uri(ROUTER))):
        certificate_issue(
            pki,
            authority=authority,
            file_name=file_name,
            uri=uri,
            addresses=[ip_address(LOOPBACK)],
            now=now(),
        )
    [port] = free_ports(1)
    return Agent(ROUTER, port, folder / "agent", folder, pki, report_url="", report_interval_s=10)


def _client(agent: Agent) -> httpx.Client:
    context = router_context(pki=agent.pki, router=ROUTER, pinned=None)
    return httpx.Client(base_url=agent.url, verify=context, timeout=60, trust_env=False)


def _intent(isp: Isp, generation: int, count: int) -> bytes:
    """`count` dot1q VXLAN VLLs on one port, every VLAN and VNI different."""
    local, remote = isp.router(ROUTER).loopback4, isp.router(FAR).loopback4
    interface = isp.router(ROUTER).ports[0].interface

    def end(n: int) -> dict[str, Any]:
        return {
            "vll": str(UUID(int=n, version=4)),
            "end": "a",
            "revision": 1,
            "admin_up": True,
            "frame": FRAME,
            "access": {
                "interface": interface,
                "tagging": "dot1q",
                "outer_vlan": n,
                "inner_vlan": None,
                "exact_match": True,
            },
            "transport": {
                "encapsulation": "vxlan",
                "family": 4,
                "local": local,
                "remote": remote,
                "vni": 70_000 + n,
            },
        }

    present = [end(n) for n in range(1, count + 1)]
    document = {"schema": 1, "router": ROUTER, "generation": generation, "present": present, "removed": []}
    return json.dumps(document).encode()


def _put(http: httpx.Client, document: bytes) -> float:
    """Milliseconds until every end is verified; AssertionError when one is not."""
    started = time.perf_counter()
    answer = http.put("/v1/intent", content=document, headers={"Content-Type": "application/json"})
    elapsed = (time.perf_counter() - started) * 1000
    answer.raise_for_status()
    unverified = [end for end in answer.json()["ends"] if end["status"] != "verified"]
    assert not unverified, unverified[:3]
    return elapsed
