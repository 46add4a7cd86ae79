"""Simulated routers, for which no agent runs.

Each sends two documents every 10 s, and repeats a document until the portal has stored it.
"""

import asyncio
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from devstack.large_network import Connection, End, ReportingAgent
from drills.ha.cluster import VIRTUAL_IP, Cluster

EVERY_S = 10.0
_PATIENCE_S = 15.0
_RETRY_S = 1.0
_TAKEN = 200


@dataclass
class Reporter:
    """A synthetic router.

    `waiting`: the samples that the portal has not stored yet; an agent keeps such samples on disk. `taken`:
    the numbers of the samples that the portal has stored.
    """

    agent: ReportingAgent
    connections: dict[str, Connection]
    waiting: list[dict[str, Any]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    failures: int = 0

    def count(self) -> None:
        now_ms = int(time.time() * 1000)
        self.agent.sampled += 1
        span = {"from_ms": now_ms - int(EVERY_S * 1000), "to_ms": now_ms}
        self.waiting.append({"seq": self.agent.sampled, **span})

    def document(self, samples: list[dict[str, Any]]) -> bytes:
        head = {
            "schema": 1,
            "boot_id": self.agent.boot_id,
            "sent_ms": int(time.time() * 1000),
            "simulated": True,
            "dropped": 0,
        }
        each = [b'%s, "ends": %s}' % (json.dumps(s)[:-1].encode(), self.agent.counts) for s in samples]
        return b'%s, "samples": [%s]}' % (json.dumps(head)[:-1].encode(), b", ".join(each))


class Reporting:
    """All synthetic routers. As long as the context lasts, they report from a separate thread."""

    def __init__(self, cluster: Cluster) -> None:
        pki = cluster.machines["app1"].root / "var/lib/longline/pki"
        self.reporters = [_reporter(name, ends, pki) for name, ends in cluster.rows["ends"].items()]
        self._enough = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def taken(self) -> set[tuple[str, int]]:
        """Return all samples that the portal has confirmed, as (agent's run, number of the sample)."""
        return {(each.agent.boot_id, seq) for each in self.reporters for seq in list(each.taken)}

    def waiting(self) -> int:
        return sum(len(each.waiting) for each in self.reporters)

    def failures(self) -> int:
        return sum(each.failures for each in self.reporters)

    async def _all(self) -> None:
        spread = EVERY_S / max(1, len(self.reporters))
        await asyncio.gather(*(self._one(each, at * spread) for at, each in enumerate(self.reporters)))

    async def _one(self, reporter: Reporter, after_s: float) -> None:
        due = time.monotonic() + after_s
        while not self._enough.is_set():
            while time.monotonic() < due and not self._enough.is_set():
                await asyncio.sleep(min(0.5, max(0.0, due - time.monotonic())))
            reporter.count()
            due += EVERY_S
            while not self._enough.is_set():
                if await _observed(reporter) and await _counters(reporter):
                    break
                reporter.failures += 1
                await asyncio.sleep(_RETRY_S)
                while time.monotonic() > due:
                    reporter.count()
                    due += EVERY_S


async def _observed(reporter: Reporter) -> bool:
    agent = reporter.agent
    status, response = await _post(reporter, "observed", agent.observed(whole=False))
    if status == 412:
        status, response = await _post(reporter, "observed", agent.observed(whole=True))
    if status == _TAKEN:
        agent.etags = json.loads(response)["etags"]
    return status == _TAKEN


async def _counters(reporter: Reporter) -> bool:
    samples = list(reporter.waiting)
    status, _ = await _post(reporter, "counters", reporter.document(samples))
    if status == _TAKEN:
        reporter.waiting = reporter.waiting[len(samples) :]
        reporter.taken += [sample["seq"] for sample in samples]
    return status == _TAKEN


async def _post(reporter: Reporter, kind: str, body: bytes) -> tuple[int, bytes]:
    connection = reporter.connections[kind]
    try:
        return await asyncio.wait_for(connection.post(kind, body), _PATIENCE_S)
    except TimeoutError:
        connection.drop()
        return 0, b""


def _reporter(name: str, ends: list[tuple[str, str]], pki: Path) -> Reporter:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(pki / f"router-{name}.pem", pki / f"router-{name}.key")
    observed = {"admin_up": True, "link_up": True, "ip_mtu": 9000, "tag": None, "linux_cp": None}
    load = {"rx_bps": 5_012_344, "tx_bps": 812, "speed_bps": 10**10}
    agent = ReportingAgent(
        name=name,
        context=context,
        interfaces=json.dumps(
            [{"name": "eth0", "sw_if_index": 1, "addresses": [], "load": load, **observed}]
        ).encode(),
        routes=b"[]",
    )
    agent.carries([End(vll, side) for vll, side in ends])
    connections = {kind: Connection(8443, context, host=VIRTUAL_IP) for kind in ("observed", "counters")}
    return Reporter(agent, connections)
