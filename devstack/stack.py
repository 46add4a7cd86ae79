"""The whole product on one machine: services, portal, agents and dataplanes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from devstack import services
from devstack.client import Client, NotReached
from devstack.folders import ROOT
from devstack.isp import Isp
from devstack.portal import Portal
from devstack.process import Family, free_ports
from devstack.release_code import agent_of
from devstack.routers.agent import Agent, Dataplane, Sockets


@dataclass(frozen=True, slots=True)
class Stack:
    """A running installation. `loaded` is the result of `devstack.load`: tokens, logins and the ids of ports.

    `sockets`, `agent_urls` and `agent_metrics_urls` have one entry per router with an agent, by router name.
    """

    isp: Isp
    portal: Portal
    dataplane: Dataplane
    family: Family
    agents: list[Agent]
    sockets: dict[str, Sockets]
    loaded: dict[str, Any]

    @property
    def url(self) -> str:
        return self.portal.url

    @property
    def agent_urls(self) -> dict[str, str]:
        return {agent.router: agent.url for agent in self.agents}

    @property
    def agent_metrics_urls(self) -> dict[str, str]:
        return {agent.router: agent.metrics_url for agent in self.agents}

    def client(self, who: str) -> Client:
        """Return a client of the REST API. ``who`` is "customer", "stranger" or "noc"."""
        return Client(self.url, self.loaded[f"{who}_token"], alive=self.family.raise_if_dead)

    def port(self, router: str, interface: str) -> int:
        identity: int = self.loaded["ports"][f"{router}/{interface}"]
        return identity


@contextmanager
def running(
    *,
    folder: Path,
    logs: Path,
    isp: Isp,
    dataplane: Dataplane,
    family: Family,
    web_port: int | None = None,
    report_interval_s: int = 10,
    durable: bool = True,
    settings: dict[str, str] | None = None,
    template: Path | None = None,
    live: bool = False,
    code: Path = ROOT,
) -> Iterator[Stack]:
    """Run everything, and yield the stack when it responds. `dataplane` must also start its children in
    `family`.

    * `live`: also run the live process, which notifies open pages of changes. Without it, pages poll.
    * `template`: a PostgreSQL cluster that is copied at the start; see `devstack.databases.postgres.running`.
    * `code`: the folder with the code of the portal and of the agents. The portal runs on the tables of this
      clone; see `devstack.portal.Portal`.

    At the end, all children are stopped before the services that they use. Raises ChildFailed.
    """
    own_web_port, agents_port, metrics_port, live_port, *free = free_ports(4 + 2 * len(isp.agents))
    agent_ports, agent_metrics_ports = free[::2], free[1::2]
    with services.running(folder=folder, logs=logs, durable=durable, template=template) as private, family:
        portal = Portal(
            services=private,
            folder=folder,
            logs=logs,
            settings=settings or {},
            web_port=web_port or own_web_port,
            agents_port=agents_port,
            metrics_port=metrics_port,
            live_port=live_port if live else None,
            code=code,
        )
        agents = [
            Agent(
                router=router.name,
                port=port,
                metrics_port=own_metrics_port,
                folder=folder / f"agent-{router.name}",
                logs=logs,
                pki=portal.pki,
                report_url=portal.agents_url,
                report_interval_s=report_interval_s,
                program=agent_of(code),
            )
            for router, port, own_metrics_port in zip(
                isp.agents, agent_ports, agent_metrics_ports, strict=True
            )
        ]
        with ThreadPoolExecutor(max_workers=1) as aside:
            prepared = aside.submit(
                portal.prepare,
                agent_urls={agent.router: agent.url for agent in agents},
                extra_ports=sorted({p.interface for r in isp.agents for p in r.ports if p.linux is None}),
            )
            # Start the dataplanes in this thread: the kernel ends a child with the thread that started it.
            portal.start_workers(family)
            sockets = {agent.router: dataplane.start(isp.router(agent.router)) for agent in agents}
            loaded = prepared.result()
        portal.start_servers(family)
        if live:
            portal.start_live(family)
        for agent in agents:
            agent.start(family, sockets[agent.router])
        yield Stack(
            isp=isp,
            portal=portal,
            dataplane=dataplane,
            family=family,
            agents=agents,
            sockets=sockets,
            loaded=loaded,
        )


def wait_for_reports(running: Stack, timeout_s: float = 30) -> None:
    """Wait until every agent has reported. Before the first report of an agent, the portal refuses orders
    that use its router.

    This reads the database, because only the database and the agent API know of reports. Raises NotReached.
    """
    count = len(running.isp.agents)
    query = "SELECT count(*) FROM inventory_observedrouter WHERE vpp_connected"
    with psycopg.connect(running.portal.services.database_url, autocommit=True) as database:

        def reported() -> bool:
            row = database.execute(query).fetchone()
            return row is not None and row[0] >= count

        if not running.client("noc").wait(reported, timeout_s=timeout_s):
            raise NotReached(f"{count} agents did not report within {timeout_s:g} s")
