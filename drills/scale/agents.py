"""The agents of all routers in one process. They send reports and respond to the portal's requests.

The drill starts the process: `python -m drills.scale.agents <folder of certificates> <file of ends> <news>`.
The process waits for the port of the agent API on its standard input, and then begins to report. It writes
one JSON document per line:

* {"urls": {id: url}} when the agents listen;
* {"introduced_s": s} after the first reports of all agents;
* {"turned": line, "up": bool, "at": epoch s} when the link of a customer port changes;
* {"took", "refused", "cpu_s"} every 10 s: the durations of reports, the refused reports, the CPU time.
"""

import asyncio
import json
import random
import resource
import ssl
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devstack.large_network import EVERY_S, KINDS, Connection, ReportingAgent, agents_of, send
from drills.scale.responses import Responses

# The agents listen on another address than the portal. On the portal's address, the kernel could give an
# agent a port that the portal needs.
_ADDRESS = "127.0.0.2"
# The first reports are complete documents. This number of agents sends them at the same time.
_AT_A_TIME = 4
_UP = {"state": "up", "since_ms": 1}
# The capabilities of an agent of this release with a VPP that supports everything.
_CAPABILITIES = {
    "encapsulations": ["l2xc", "vxlan", "geneve", "gre"],
    "policing": "port",
    "line_tests": True,
    "gre_keys": True,
    "underlay_tables": True,
    "path_watch": True,
    "watching": {"interval_ms": 300, "multiplier": 3},
    "probes": True,
    "adoption": "refused",
    "labels": False,
    "freezes": True,
    "freeze": None,
    "link_loss_forwarding": True,
    "circuits": [],
    "set_aside": [],
}


@dataclass
class Figures:
    """The durations (seconds) of stored reports since the last output, and the statuses of
    refused reports.
    """

    took: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    refused: Counter[int] = field(default_factory=Counter)


def write(**document: Any) -> None:
    print(json.dumps(document), flush=True)


async def main(folder: Path, ends: dict[int, list[tuple[str, str]]], news: float) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    agents = agents_of(ends, folder, capabilities=_CAPABILITIES, path=_UP)
    responses = Responses()
    urls = {}
    for number, agent in agents.items():
        server = await asyncio.start_server(
            responses.serving(agent), _ADDRESS, 0, ssl=_server_context(folder, number), backlog=16
        )
        urls[number] = f"https://{_ADDRESS}:{server.sockets[0].getsockname()[1]}"
    write(urls=urls)
    loop = asyncio.get_running_loop()
    port = int(await loop.run_in_executor(None, sys.stdin.readline))
    connections = {
        (number, kind): Connection(port, agents[number].context) for number in agents for kind in KINDS
    }
    began = time.perf_counter()
    few = asyncio.Semaphore(_AT_A_TIME)
    await asyncio.gather(*(_introduce(few, connections, number, agents[number]) for number in agents))
    write(introduced_s=time.perf_counter() - began)
    figures = Figures()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for at, (number, agent) in enumerate(agents.items()):
            for kind in KINDS:
                due = began + at * EVERY_S / len(agents)
                tasks.create_task(_report(figures, connections[number, kind], agent, kind, due, news))
        tasks.create_task(_print_regularly(figures))


def _server_context(folder: Path, number: int) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(folder / f"router-{number}.pem", folder / "router.key")
    context.load_verify_locations(folder / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _introduce(
    few: asyncio.Semaphore, connections: dict[tuple[int, str], Connection], number: int, agent: ReportingAgent
) -> None:
    async with few:
        for kind in KINDS:
            status = await send(connections[number, kind], agent, kind)
            if status != 200:
                raise RuntimeError(f"the portal answered {agent.name}'s first report with {status}")


async def _report(
    figures: Figures, connection: Connection, agent: ReportingAgent, kind: str, due: float, news: float
) -> None:
    """Report every 10 s, forever.

    If a report takes longer than 10 s, the next report follows immediately, as with real agents.
    """
    while True:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if kind == "observed" and agent.first is not None and random.random() < news:
            agent.turn()
            write(turned=agent.first.vll, up=not agent.turned, at=time.time() - (time.perf_counter() - due))
        status = await send(connection, agent, kind)
        if status == 200:
            figures.took[kind].append(time.perf_counter() - due)
        else:
            figures.refused[status] += 1
        due = max(due + EVERY_S, time.perf_counter())


async def _print_regularly(figures: Figures) -> None:
    while True:
        await asyncio.sleep(EVERY_S)
        write(
            took={kind: [round(each, 4) for each in took] for kind, took in figures.took.items()},
            refused=dict(figures.refused),
            cpu_s=time.process_time(),
        )
        figures.took, figures.refused = {kind: [] for kind in KINDS}, Counter()


if __name__ == "__main__":
    rows = json.loads(Path(sys.argv[2]).read_text())
    asyncio.run(
        main(
            Path(sys.argv[1]),
            {int(number): [(vll, side) for vll, side in ends] for number, ends in rows.items()},
            float(sys.argv[3]),
        )
    )
