"""Orders per second through the web server. 16 orders are in flight, and each commit is written to disk."""

import http.client
import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from bench.cpu import cpu_s
from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized
from devstack.folders import ROOT, VENV_BIN
from devstack.process import LOOPBACK, Child, Family, accepts, free_ports

IN_FLIGHT = sized(16, smallest=4)
# The VLANs of the orders. The first range is a warm-up: during the first orders of a connection, the database
# plans its statements.
_WARM_UP, _MEASURED = range(1, 5), range(5, sized(45, smallest=7))


def measure() -> Iterator[Figure]:
    with migrated(), ordering_isp() as isp:
        isp.order_all(_WARM_UP)
        cpu, began = cpu_s(), time.perf_counter()
        times = isp.order_all(_MEASURED)
        elapsed, cpu = time.perf_counter() - began, cpu_s() - cpu
        note = f"{IN_FLIGHT} in flight, each on two ports of its own, 2 web workers as deployed, fsync on"
        yield Figure("orders_per_s", len(times) / elapsed, "1/s", note)
        yield Figure("orders_p95_ms", percentile(times, 95) * 1_000, "ms", note)
        cpu_note = (
            "web workers, PostgreSQL and the clients; of two idle cores, 2,000 of it are had in a second"
        )
        yield Figure("orders_cpu_ms", cpu / len(times) * 1_000, "ms", cpu_note)


@dataclass(frozen=True)
class OrderingIsp:
    """A web server, and clients that order at the same time. Each client has a separate pair of ports."""

    port: int
    token: str
    pairs: list[tuple[int, int]]
    clients: ThreadPoolExecutor

    def order_all(self, vlans: range) -> list[float]:
        """Let every client order each of these VLANs. Return the seconds of each order."""

        def client(ports: tuple[int, int]) -> list[float]:
            return _order_many(self.port, self.token, *ports, vlans)

        return [one for taken in self.clients.map(client, self.pairs) for one in taken]


@contextmanager
def ordering_isp(*, writes_per_min: int = 0, clients: int = IN_FLIGHT) -> Iterator[OrderingIsp]:
    """Run the small ISP behind a web server as in production. ``writes_per_min=0`` disables the
    rate limit.
    """
    with TemporaryDirectory(prefix="longline-bench-") as folder:
        token, pairs = small_isp_with_pairs()
        (port,) = free_ports(1)
        web = Child(
            name="web",
            argv=[
                str(VENV_BIN / "gunicorn"),
                *(
                    "--config",
                    "python:portal.processes.gunicorn_web",
                    "--workers",
                    "2",
                    "--no-control-socket",
                ),
                *("--bind", f"{LOOPBACK}:{port}"),
            ],
            log=Path(folder) / "web.log",
            env=os.environ | {"LONGLINE_API_WRITES_PER_MIN": str(writes_per_min)},
            cwd=ROOT,
        )
        with Family() as family, ThreadPoolExecutor(clients) as pool:
            family.start(web)
            web.wait_until(lambda: accepts(port))
            yield OrderingIsp(port, token, pairs[:clients], pool)


def _order_many(port: int, token: str, a_port: int, z_port: int, vlans: range) -> list[float]:
    """Order a line for each of these VLANs between these two ports. Return the seconds of each order."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Host": "localhost"}
    taken = []
    for vlan in vlans:
        end = {"tagging": "dot1q", "outer_vlan": vlan}
        order: dict[str, Any] = {"svc_mtu": 1500, "cir_bps": 1_000_000, "transport": "auto"}
        body = json.dumps({**order, "a_end": {**end, "port": a_port}, "z_end": {**end, "port": z_port}})
        began = time.perf_counter()
        connection.request("POST", "/api/v1/vlls", body, headers)
        response = connection.getresponse()
        text = response.read()
        taken.append(time.perf_counter() - began)
        assert response.status == 202, text
    return taken


def small_isp_with_pairs() -> tuple[str, list[tuple[int, int]]]:
    """Return a token that may order, and for each client a pair of ports on two routers. All belong to one
    customer.
    """
    from devstack.isp import BACKBONE_IP_MTU, small_isp
    from devstack.load import load
    from portal.core.clock import now
    from portal.inventory.models import BackboneLink, ObservedInterface, ObservedRouter, Port, Router

    isp = small_isp()
    urls = {router.name: f"https://{router.name}.example.net" for router in isp.agents}
    loaded = load(isp, agent_urls=urls, now=now())
    # No agents run here. These are the values that agents would report.
    BackboneLink.objects.update(a_ip_mtu=BACKBONE_IP_MTU, z_ip_mtu=BACKBONE_IP_MTU)
    for router in Router.objects.exclude(agent_url=""):
        ObservedRouter.objects.create(
            router=router,
            reported_at=now(),
            boot_id=uuid4(),
            sent_ms=0,
            agent_version="",
            vpp_connected=True,
            line_tests=True,
        )
        for side in isp.sides_of(isp.router(router.name)):
            ObservedInterface.objects.create(
                router=router, name=side.interface, admin_up=True, link_up=True, ip_mtu=BACKBONE_IP_MTU
            )

    def another(like: str, number: int) -> int:
        port = Port.objects.get(pk=loaded["ports"][like])
        port.pk, port.interface = None, f"bench{number}"
        port.save()
        return port.pk

    pairs = [(another("rhino/host-cust1", n), another("hippo/host-cust1", n)) for n in range(IN_FLIGHT)]
    return loaded["customer_token"], pairs
