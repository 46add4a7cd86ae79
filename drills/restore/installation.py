"""The whole product with stand-ins for VPP, and with customers who record which orders were accepted."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from devstack import stack
from devstack.databases.postgres import migrated_cluster
from devstack.folders import RUN
from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.process import Family, Server
from devstack.routers.vppsim import SimulatedDataplane
from devstack.stack import Stack
from drills.checks.checker import Checker
from drills.checks.customer import Customer, Line
from drills.checks.vpptestctl import VppConfig, VppTestctl

PAIRS = 8
SETTINGS = {
    "LONGLINE_PROBE_EVERY_S": "0",
    "LONGLINE_COOLING_OFF_S": "0",
    "LONGLINE_MIN_CIR_BPS": "1",
    # One client sends the requests of many customers.
    "LONGLINE_API_WRITES_PER_MIN": "100000",
    "LONGLINE_API_READS_PER_MIN": "100000",
}
# All processes that use the database. A restore stops them and starts them again.
PROCESSES = (
    "beat",
    "agent-api",
    "web",
    "doubtful-messenger",
    "messenger",
    "sweeper",
    "doubtful",
    "worker",
)

_IN_SERVICE = """
SELECT v.id::text FROM vll_vll v JOIN accounts_customer c ON c.id = v.customer_id
WHERE v.lifecycle = 'active' AND v.in_sync AND c.name <> 'Seeded'
"""


@dataclass
class Installation:
    """An installation with two customers.

    The customer ``dairy`` orders lines on the pairs of ports in ``pairs``. The customer ``press`` orders
    lines on ``press_pair``. All pairs connect rhino and hippo.
    """

    stack: Stack
    folder: Path
    logs: Path
    dairy: Customer
    press: Customer
    pairs: list[Line]
    press_pair: Line

    @property
    def database_url(self) -> str:
        return self.stack.portal.services.database_url

    @property
    def database(self) -> Server:
        return self.stack.portal.services.postgres

    def checker(self) -> closing[Checker]:
        """Return a checker for the database that is in use now."""
        return closing(Checker(self.database_url, self._vpps()))

    def configs(self) -> dict[str, VppConfig]:
        """Return the configurations of both VPPs."""
        return {router: vpp.config() for router, vpp in self._vpps().items()}

    def lines_in_service(self) -> set[str]:
        """Return the ids of the lines in service on the routers with agents."""
        with self.checker() as checker:
            return {line for (line,) in checker.sql(_IN_SERVICE)}

    def _vpps(self) -> dict[str, VppTestctl]:
        return {router: VppTestctl(sockets.api) for router, sockets in self.stack.sockets.items()}

    def processes_stop(self) -> None:
        """Stop all processes of the portal. Agents and VPPs continue to run."""
        for name in PROCESSES:
            self.stack.family[name].signal_stop()
        for name in PROCESSES:
            self.stack.family[name].stop()

    def processes_start(self) -> None:
        """Start the portal: first the processes that wait for tasks, then the servers. When this returns,
        they respond.
        """
        for name in reversed(PROCESSES):
            self.stack.family[name].restart()


@contextmanager
def installation() -> Iterator[Installation]:
    """Run an installation without lines, and wait for the reports of both agents.

    Commits are written to disk. The logs remain in .run/restore-drill.
    """
    isp = small_isp(extra_ports=tuple(Port(f"memif{n}/0", ALPINE_DAIRY) for n in range(1, PAIRS + 1)))
    logs = RUN / "restore-drill"
    shutil.rmtree(logs, ignore_errors=True)
    family = Family()
    # Use a short path: the path of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ll-restore-") as name:
        folder = Path(name)
        # The account that runs PostgreSQL must be able to enter this folder.
        folder.chmod(0o711)
        with stack.running(
            folder=folder,
            logs=logs,
            isp=isp,
            dataplane=SimulatedDataplane(isp=isp, folder=folder / "vppsim", logs=logs, family=family),
            family=family,
            settings=SETTINGS,
            template=migrated_cluster(),
        ) as running:
            stack.wait_for_reports(running)
            yield Installation(
                stack=running,
                folder=folder,
                logs=logs,
                dairy=Customer(running.url, running.loaded["customer_token"]),
                press=Customer(running.url, running.loaded["stranger_token"]),
                pairs=[_pair(running, f"memif{n}/0") for n in range(1, PAIRS + 1)],
                press_pair=_pair(running, "host-cust3"),
            )


def _pair(running: Stack, interface: str) -> Line:
    return Line(interface, running.port("rhino", interface), running.port("hippo", interface))
