"""The reports of a large network: each router sends its state and its counters every 10 s, over mutual TLS.

The load follows a timetable and does not wait for responses. The time of a report begins when the report is
due, even if it is sent later.
"""

import asyncio
import os
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from bench.cpu import cpu_s
from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized
from devstack.folders import ROOT, VENV_BIN
from devstack.large_network import (
    KINDS,
    Connection,
    ReportingAgent,
    agents_of,
    certificates_issue,
    network_fill,
    send,
    send_at,
)
from devstack.process import LOOPBACK, Child, Family, accepts, free_ports

ROUTERS, LINES_A_ROUTER = sized(1_000, smallest=4), sized(100, smallest=6)
MEASURED = sized(6, smallest=1)
EVERY_S = sized(10, smallest=1)
# The agent API refuses reports if too many routers return at the same time (docs/reference/agent-reports.md).
_BUSY = 429
# The first reports are complete documents. This number of reports is sent at the same time.
_AT_A_TIME = 16
# The first reports take so long that routers become silent, and when they return, the portal refuses some
# reports. Before the measurement, the load follows the timetable until no report of a round is refused. This
# is the maximum number of such rounds.
_MOST_ROUNDS = 30
# The fraction of reports of ends in which a customer's link has changed.
CHANGED_SHARE = sized(5, smallest=50) / 100


def measure() -> Iterator[Figure]:
    with migrated(), TemporaryDirectory(prefix="longline-bench-") as name:
        os.environ["LONGLINE_PKI_DIR"] = name
        folder = Path(name)
        ends = network_fill(routers=ROUTERS, lines=ROUTERS * LINES_A_ROUTER // 2)
        certificates_issue(folder, routers=ROUTERS)
        agents = list(agents_of(ends, folder, every_s=EVERY_S).values())
        (port,) = free_ports(1)
        agent_api = Child(
            name="agent-api",
            argv=[
                str(VENV_BIN / "gunicorn"),
                *(
                    "--config",
                    "python:portal.processes.gunicorn_agent_api",
                    "--workers",
                    "2",
                    "--no-control-socket",
                ),
                *("--bind", f"{LOOPBACK}:{port}"),
            ],
            log=folder / "agent-api.log",
            env=os.environ | {"LONGLINE_PKI_DIR": name},
            cwd=ROOT,
        )
        with Family() as family:
            family.start(agent_api)
            agent_api.wait_until(lambda: accepts(port))
            load = asyncio.run(_load(agents, port))
        _check_stored(agents)
    offered = ROUTERS / EVERY_S
    note = (
        f"{ROUTERS} routers of {LINES_A_ROUTER} lines, each reports its state and its counters every"
        f" {EVERY_S} s: {2 * offered:.0f} documents a second are offered, {CHANGED_SHARE:.0%} of the state"
        f" reports contain a change; 2 processes, mutual TLS on {2 * ROUTERS} kept connections, fsync on;"
        " PostgreSQL and the load share the cores; before, all sent their first, complete report in"
        f" {load.introduced_s:.0f} s, {_AT_A_TIME} at a time"
    )
    yield Figure(
        "reports_return_s",
        load.returned_s,
        "s",
        f"{ROUTERS} routers that were silent report as always, until all are read within one round;"
        f" refused until then: {load.refused}",
    )
    yield Figure("reports_per_s", load.rate("observed"), "1/s", f"{note}; refused or failed: {load.failed}")
    both = [took for kind in load.took.values() for took in kind]
    each = ", ".join(f"{kind} {percentile(took, 95) * 1000:.0f} ms" for kind, took in load.took.items())
    yield Figure("reports_p95_ms", percentile(both, 95) * 1_000, "ms", f"both documents; {each}")
    yield Figure(
        "reports_cpu_ms",
        load.portal_cpu_s / len(load.took["observed"]) * 1_000,
        "ms",
        "agent API and PostgreSQL, of a router's two documents; the load's own"
        f" {load.own_cpu_s / len(load.took['observed']) * 1_000:.1f} ms come on top",
    )


def _check_stored(agents: list[ReportingAgent]) -> None:
    """Raise an error unless the portal has stored the last report of each router's first end."""
    from portal.telemetry.models import Sample
    from portal.vll.models import VllEnd

    stored = {
        (str(vll), side): link_up
        for vll, side, link_up in VllEnd.objects.values_list("vll", "side", "link_up")
    }
    sampled = set(Sample.objects.values_list("vll_id", "side").distinct())
    for agent in agents:
        assert agent.first is not None
        vll, side = agent.first.vll, agent.first.side
        assert stored[vll, side] is not agent.turned, f"{agent.name}: {vll} {side}"
        assert (UUID(vll), side) in sampled, f"{agent.name}: no counters of {vll} {side}"


@dataclass
class Load:
    """The times (seconds) until documents were stored, by kind, and the cost of the measured part."""

    took: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    failed: int = 0
    began: float = 0.0
    ended: float = 0.0
    introduced_s: float = 0.0
    returned_s: float = 0.0
    refused: int = 0
    portal_cpu_s: float = 0.0
    own_cpu_s: float = 0.0

    def rate(self, kind: str) -> float:
        return len(self.took[kind]) / (self.ended - self.began)


async def _load(agents: list[ReportingAgent], port: int) -> Load:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    load = Load()
    connections = {
        (agent.name, kind): Connection(port, agent.context) for agent in agents for kind in load.took
    }
    few = asyncio.Semaphore(_AT_A_TIME)
    began = time.perf_counter()
    await asyncio.gather(*(_introduce(few, connections, agent) for agent in agents))
    load.introduced_s = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(_MOST_ROUNDS):
        round_began = time.perf_counter()
        statuses = await asyncio.gather(
            *(
                _send_at(due, connections[agent.name, kind], agent, kind)
                for agent, kind, due in _timetable(load, agents, round_began)
            )
        )
        load.refused += statuses.count(_BUSY)
        if set(statuses) == {200} and time.perf_counter() - round_began < 1.1 * EVERY_S:
            break
    else:
        raise RuntimeError(f"the network did not come back within {time.perf_counter() - began:.0f} s")
    load.returned_s = time.perf_counter() - began
    cpu, own = cpu_s(), time.process_time()
    load.began = time.perf_counter()
    await asyncio.gather(
        *(
            _report(load, connections[agent.name, kind], agent, kind, due)
            for agent, kind, due in _timetable(load, agents, load.began)
        )
    )
    load.ended = max(time.perf_counter(), load.began + MEASURED * EVERY_S)
    load.own_cpu_s = time.process_time() - own
    load.portal_cpu_s = cpu_s() - cpu - load.own_cpu_s
    return load


def _timetable(
    load: Load, agents: list[ReportingAgent], began: float
) -> Iterator[tuple[ReportingAgent, str, float]]:
    """Yield agent, kind and due time of each document of a round that begins at ``began``."""
    for at, agent in enumerate(agents):
        for kind in load.took:
            yield agent, kind, began + at * EVERY_S / len(agents)


async def _introduce(
    few: asyncio.Semaphore, connections: dict[tuple[str, str], Connection], agent: ReportingAgent
) -> None:
    async with few:
        for kind in ("observed", "counters"):
            status = await send(connections[agent.name, kind], agent, kind)
            if status != 200:
                raise RuntimeError(f"the portal answered {agent.name}'s first report with {status}")


async def _send_at(due: float, connection: Connection, agent: ReportingAgent, kind: str) -> int:
    if kind == "observed" and random.random() < CHANGED_SHARE:
        agent.turn()
    return await send_at(due, connection, agent, kind)


async def _report(load: Load, connection: Connection, agent: ReportingAgent, kind: str, due: float) -> None:
    for _ in range(MEASURED):
        if await _send_at(due, connection, agent, kind) == 200:
            load.took[kind].append(time.perf_counter() - due)
        else:
            load.failed += 1
        due += EVERY_S
