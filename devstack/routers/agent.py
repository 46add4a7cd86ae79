"""The agent process of one router, and its dataplane: a VPP or the stand-in, reached over Unix sockets."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from devstack.folders import BUILD
from devstack.isp import Router
from devstack.process import LOOPBACK, Child, Family, accepts


@dataclass(frozen=True, slots=True)
class Sockets:
    api: Path
    stats: Path
    cli: Path


class Dataplane(Protocol):
    """A dataplane. `name` is "vpp <version>" or "vppsim". The version may be unknown until the first router
    was started.
    """

    @property
    def name(self) -> str: ...

    def start(self, router: Router) -> Sockets: ...


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent. `folder` has its configuration and state. `report_url` is the URL of the agent API."""

    router: str
    port: int
    metrics_port: int
    folder: Path
    logs: Path
    pki: Path
    report_url: str
    report_interval_s: int
    address: str = LOOPBACK
    program: Path = BUILD / "longline-agent"

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def metrics_url(self) -> str:
        return f"http://{LOOPBACK}:{self.metrics_port}"

    @property
    def ca(self) -> Path:
        """The file with the CAs that the agent trusts."""
        return self.folder / "ca.pem"

    def start(self, family: Family, sockets: Sockets) -> Child:
        state = self.folder / "state"
        state.mkdir(parents=True, exist_ok=True)
        # The agent gets a copy of the CAs, as on a separate machine.
        shutil.copy(self.pki / "ca.pem", self.ca)
        config = self.folder / "agent.yaml"
        config.write_text(f"""\
router: {self.router}
listen: {self.address}:{self.port}
state_dir: {state}
adoption: allowed
tls:
  ca: {self.ca}
  certificate: {self.pki / f"router-{self.router}.pem"}
  key: {self.pki / f"router-{self.router}.key"}
vpp:
  api_socket: {sockets.api}
  stats_socket: {sockets.stats}
  cli_socket: {sockets.cli}
report:
  url: {self.report_url}
  interval: {self.report_interval_s}s
metrics:
  listen: {LOOPBACK}:{self.metrics_port}
""")
        child = Child(
            name=f"agent-{self.router}",
            argv=[str(self.program), "-config", str(config)],
            log=self.logs / f"agent-{self.router}.log",
        )
        return family.start(child).wait_until(lambda: accepts(self.port, self.address))

    def report_over(self, url: str) -> None:
        """Use another URL for reports to the portal. The agent uses it from its next start."""
        config = self.folder / "agent.yaml"
        config.write_text(config.read_text().replace(self.report_url, url))
