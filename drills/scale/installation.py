"""The whole portal with the simulated network: PostgreSQL, Redis, all processes of the portal,
and all agents.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from bench.database import migrated
from devstack.folders import ROOT
from devstack.large_network import certificates_issue, network_fill
from devstack.portal import Portal
from devstack.process import Family, free_ports
from devstack.services import Services
from drills.scale.rows import People, leases_fill, people_make
from drills.scale.size import Size

# Bytes. The longest line that the process of the agents may print: it contains all ends of a large network.
_LINE_LIMIT = 2**26
# The number of worker processes of each queue, as in docker-compose.yml.
_WORKERS = {
    "provisioning": 4,
    "telemetry": 1,
    "batch": 1,
    "netbox": 1,
    "sweepers": 1,
    "doubtful": 2,
    "notifications": 2,
    "webhooks": 2,
    "webhooks_doubtful": 2,
}
_SERVERS = ("web", "agent-api", "live", "beat")


@dataclass
class Agents:
    """The process that simulates all agents (`drills.scale.agents`)."""

    process: asyncio.subprocess.Process

    async def documents(self) -> AsyncIterator[dict[str, Any]]:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            yield json.loads(line)
        raise RuntimeError(f"the agents ended with status {await self.process.wait()}")

    async def begin(self, port: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"%d\n" % port)
        await self.process.stdin.drain()


@dataclass
class Installation:
    """An installation.

    ``ends``: (line, side) of the ends on each router. ``turning``: for each router, the line whose customer
    port changes its link state.
    """

    services: Services
    portal: Portal
    family: Family
    people: People
    folder: Path
    ends: dict[int, list[tuple[str, str]]]
    pids: dict[str, int] = field(default_factory=dict)

    @property
    def turning(self) -> dict[int, str]:
        return {router: ends[0][0] for router, ends in self.ends.items()}

    async def start_agents(self, news: float) -> Agents:
        ends_file = self.folder / "ends.json"
        ends_file.write_text(json.dumps(self.ends))
        process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "drills.scale.agents"),
            *(str(self.portal.pki), str(ends_file), str(news)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
            cwd=ROOT,
        )
        self.pids["agents of the simulation"] = process.pid
        return Agents(process)

    def urls_write(self, urls: dict[str, str]) -> None:
        """Store the URLs of the agents in the database. The keys are ids of routers."""
        with psycopg.connect(self.services.database_url) as database:
            database.execute(
                "UPDATE inventory_router SET agent_url = ends_file.url"
                " FROM unnest(%s::bigint[], %s::text[]) AS ends_file (id, url)"
                " WHERE inventory_router.id = ends_file.id",
                [[int(number) for number in urls], list(urls.values())],
            )

    def start_doors(self) -> None:
        """Start the processes that people and routers connect to (web, agent API, live), and
        beat.
        """
        self.portal.start_servers(self.family)
        self.portal.start_live(self.family)

    def start_workers(self) -> None:
        for queue, processes in _WORKERS.items():
            self.family.start(self.portal.worker_child(queue, queues=queue, concurrency=processes))

    def processes(self) -> dict[str, int]:
        """Return the pid of the first process of each program, by name."""
        children = {name: self.family[name].process.pid for name in (*_SERVERS, *_WORKERS)}
        services = {
            "postgres": self.services.postgres.child.process.pid,
            "redis": self.services.redis.child.process.pid,
        }
        return children | services | self.pids


@contextmanager
def installed(size: Size, folder: Path) -> Iterator[Installation]:
    """Prepare an installation with all rows. No process of the portal has started yet."""
    with migrated() as services, Family() as family:
        web_port, agents_port, metrics_port, live_port = free_ports(4)
        portal = Portal(
            services=services,
            folder=folder,
            logs=folder / "logs",
            web_port=web_port,
            agents_port=agents_port,
            metrics_port=metrics_port,
            live_port=live_port,
            agent_api_processes=2,
            # Pass on the secrets of this process, because it creates sessions and tokens for the portal.
            settings={name: os.environ[name] for name in ("SECRET_KEY", "TOKEN_PEPPER")},
        )
        portal.pki.mkdir()
        ends = network_fill(
            routers=size.routers, lines=size.lines, peers=size.peers, customers=size.customers
        )
        certificates_issue(portal.pki, routers=size.routers)
        leases_fill()
        yield Installation(services, portal, family, people_make(size.customers), folder, ends)
