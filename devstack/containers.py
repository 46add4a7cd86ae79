"""The demo in containers: `python -m devstack.containers seed|order`. docker-compose.yml runs both.

`seed` fills the database and the volume /demo. `order` orders a line and waits until the line carries
traffic. Both commands can run again: they keep everything that exists.

The small ISP can run on real VPPs in unprivileged containers, without capabilities and interfaces of the
host. The VPPs are connected by memif: shared memory that they negotiate over sockets in a volume. An
additional VPP, the "world", is the far end of all other interfaces. It simulates the customers and the
routers without an agent.
"""

import json
import os
import struct
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import django

from devstack.client import Client
from devstack.demo_line import facts_write, first_line, logins, private_write
from devstack.isp import Isp, Router, small_isp
from devstack.routers import vpp
from devstack.routers.vpp_network import commands_of
from devstack.routers.vppsim import config_of

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


DEMO = Path("/demo")
UNDERLAY = Path("/run/underlay")
FACTS = DEMO / "demo.json"
WEB = "http://web:8000"
AGENT_PORT = 9443
METRICS_PORT = 9470
REPORT_INTERVAL_S = 2
REPORTS_WITHIN_S = 120


def seed() -> None:
    """Write rows, one-time tokens, and the configurations of agents, stand-ins and real VPPs."""
    from devstack.load import load
    from portal.accounts.models import User
    from portal.core import clock
    from portal.inventory import models
    from portal.inventory.certificates import enrolment_offer

    isp = small_isp()
    if models.Router.objects.exists():
        print("the database has routers already: nothing was done")
        return
    for router in isp.agents:
        _write(f"{router.name}.json", json.dumps(config_of(router, isp, UNDERLAY), indent=1))
        _write(f"agent-{router.name}.yaml", _agent_yaml(router))
        _write_vpp(router.name, router_script(router, isp))
    _write_vpp("world", world_script(isp))
    urls = {router.name: f"https://agent-{router.name}:{AGENT_PORT}" for router in isp.agents}
    loaded = load(isp, agent_urls=urls, now=clock.now())
    nina = User.objects.get(username=loaded["noc_login"]["username"])
    for router in isp.agents:
        row = models.Router.objects.get(name=router.name)
        _write(f"{router.name}.token", enrolment_offer(router=row, user=nina, now=clock.now()))
    facts_write(FACTS, loaded)


def order() -> None:
    """Order a line from Rhino to Hippo, unless a line exists."""
    facts: dict[str, Any] = json.loads(FACTS.read_text())
    customer = Client(WEB, facts["customer_token"])
    if "vll" not in facts:
        _wait_for_reports(small_isp(), customer)
        facts["vll"] = first_line(customer, facts["ports"], timeout_s=60)
        facts_write(FACTS, facts)

    if not customer.wait(lambda: customer.carries_traffic(facts["vll"]), timeout_s=60):
        sys.exit(f"no traffic was counted on {facts['vll']} within 60 s")
    print(*logins(facts), sep="\n")
    print(f"demo ready {os.environ['BASE_URL']}", flush=True)


def _agent_yaml(router: Router) -> str:
    return f"""\
router: {router.name}
listen: 0.0.0.0:{AGENT_PORT}
tls:
  ca: /var/lib/longline/tls/ca.pem
  certificate: /var/lib/longline/tls/router.pem
  key: /var/lib/longline/tls/router.key
report:
  url: https://agent-api:8443
  interval: {REPORT_INTERVAL_S}s
metrics:
  listen: 0.0.0.0:{METRICS_PORT}
"""


def _write_vpp(name: str, commands: list[str]) -> None:
    script = DEMO / f"{name}.vpp"
    _write(script.name, "\n".join([*commands, ""]))
    _write(f"{name}.conf", startup_conf(script))


def _wait_for_reports(isp: Isp, client: Client) -> None:
    from portal.inventory.models import ObservedRouter

    def reported() -> bool:
        return ObservedRouter.objects.filter(vpp_connected=True).count() >= len(isp.agents)

    if not client.wait(reported, timeout_s=REPORTS_WITHIN_S):
        sys.exit(f"the agents did not report within {REPORTS_WITHIN_S} s")


def _write(name: str, text: str) -> None:
    """Write a private file. The agents' containers run as the same user."""
    private_write(DEMO / name, text)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    {"seed": seed, "order": order}[sys.argv[1]]()
