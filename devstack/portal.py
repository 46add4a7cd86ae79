"""The portal's processes (web, live, agent API, metrics, workers and beat) on private services."""

import json
import os
import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from devstack.folders import ROOT, VENV_BIN
from devstack.process import LOOPBACK, Child, Family, Server, accepts, run
from devstack.services import Services


@dataclass
class Portal:
    services: Services
    folder: Path
    logs: Path
    web_port: int
    agents_port: int
    metrics_port: int
    # The TCP port for the streams of `start_live`. With None, pages poll.
    live_port: int | None = None
    agent_api_processes: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    # The folder with the code of the portal's processes. They run in this clone's Python environment.
    # `prepare` and `manage` always run this clone's code.
    code: Path = ROOT

    def __post_init__(self) -> None:
        self.static.mkdir(parents=True, exist_ok=True)
        self._environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "SECRET_KEY": secrets.token_urlsafe(48),
            "TOKEN_PEPPER": secrets.token_urlsafe(48),
            "BASE_URL": self.url,
            "DATABASE_URL": self.services.database_url,
            "REDIS_URL": self.services.redis_url,
            "LONGLINE_PKI_DIR": str(self.pki),
            "STATIC_ROOT": str(self.static),
            "LONGLINE_METRICS_DIR": str(self.folder / "metrics"),
            # The NOC user of the demo has no phone for a second factor.
            "LONGLINE_NOC_NEEDS_TOTP": "false",
            # The receivers of webhooks run on this machine.
            "LONGLINE_WEBHOOK_NETWORKS": "127.0.0.0/8",
            "LONGLINE_WEBHOOK_ALLOW_HTTP": "true",
            "PYTHONUNBUFFERED": "1",
            # The log level of the caller may be higher, but the logs of these processes need INFO.
            "LOG_LEVEL": "INFO",
            **({"LONGLINE_LIVE_URL": f"{self.live_url}/live/"} if self.live_port else {}),
            **self.settings,
        }

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.web_port}"

    @property
    def agents_url(self) -> str:
        return f"https://{LOOPBACK}:{self.agents_port}"

    @property
    def metrics_url(self) -> str:
        return f"http://{LOOPBACK}:{self.metrics_port}"

    @property
    def live_url(self) -> str:
        """The URL of the streams.

        The URL has a separate origin, because no proxy is in front of the live process and the web server.
        """
        return f"http://{LOOPBACK}:{self.live_port}"

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def static(self) -> Path:
        """An empty folder, which must exist. Static files are served from their sources."""
        return self.folder / "static"

    def prepare(self, agent_urls: dict[str, str], extra_ports: list[str]) -> dict[str, Any]:
        """Create tables, certificates and the rows of the small ISP. Return the result of `devstack.load`."""
        arguments = {"agent_urls": agent_urls, "extra_ports": extra_ports, "pki": str(self.pki)}
        output = run(
            [str(VENV_BIN / "python"), "-m", "devstack.prepare", json.dumps(arguments)],
            log=self.logs / "prepare.log",
            env=self._environment,
            cwd=ROOT,
        )
        loaded: dict[str, Any] = json.loads(output)
        return loaded

    def manage(self, *arguments: str) -> str:
        """Run a management command and return its output. Raises ChildFailed."""
        return run(
            [str(VENV_BIN / "python"), "manage.py", *arguments],
            log=self.logs / "manage.log",
            env=self._environment,
            cwd=ROOT,
        )

    def use_database(self, postgres: Server) -> None:
        """Use this database for commands, and for processes that start from now on."""
        self.services = replace(self.services, postgres=postgres)
        self._environment["DATABASE_URL"] = postgres.url

    def start_workers(self, family: Family) -> None:
        """Start the workers, which wait for tasks in Redis. They need no tables before the first task."""
        for child in (
            self.worker_child("worker", queues="provisioning,telemetry,batch,netbox", concurrency=2),
            self.worker_child("doubtful", queues="doubtful", concurrency=1),
            self.worker_child("sweeper", queues="sweepers", concurrency=1),
            self.worker_child(
                "messenger", "--pool", "threads", queues="notifications,webhooks", concurrency=8
            ),
            self.worker_child(
                "doubtful-messenger", "--pool", "threads", queues="webhooks_doubtful", concurrency=4
            ),
        ):
            family.start(child)

    def start_servers(self, family: Family) -> None:
        """Start web and agent API, and wait for them. Start the processes that send tasks.

        All of these processes read tables.
        """
        web = self.web_child("web", self.web_port)
        processes = ("--workers", str(self.agent_api_processes))
        agent_api = self._gunicorn("agent-api", "agent_api", self.agents_port, *processes)
        for child in (web, agent_api):
            family.start(child)
        # Only the previous release has a relay; tests run its code too.
        if (self.code / "provisioning" / "outbox_relay.py").exists():
            family.start(self._child("relay", "python", "manage.py", "relay"))
        web.wait_until(lambda: _status(self.url) < 500)
        agent_api.wait_until(lambda: accepts(self.agents_port))
        schedule = str(self.folder / "beat-schedule")
        family.start(self._child("beat", "celery", "-A", "portal", "beat", "-s", schedule))

    def start_metrics(self, family: Family) -> None:
        """Start the server for Prometheus, and do not wait for it."""
        metrics = self._gunicorn("metrics", "metrics", self.metrics_port)
        family.start(metrics).wait_until(lambda: accepts(self.metrics_port))

    def start_live(self, family: Family) -> Child:
        """Start the server for the streams of open pages, on `live_port`."""
        live = self._gunicorn("live", "live", self.live_port)
        return family.start(live).wait_until(lambda: _status(f"{self.live_url}/healthz") == 200)

    def web_child(self, name: str, port: int, *arguments: str) -> Child:
        """Return the web server for this port without starting it. `arguments` are for gunicorn."""
        return self._gunicorn(name, "web", port, "--workers", "2", *arguments)

    def worker_child(self, name: str, *arguments: str, queues: str, concurrency: int) -> Child:
        """Return a worker without starting it. `arguments` are for Celery."""
        node = ("-n", f"{name}@%h", "-Q", queues, "--concurrency", str(concurrency), "--loglevel", "INFO")
        return self._child(name, "celery", "-A", "portal", "worker", *node, *arguments)

    def _gunicorn(self, name: str, module: str, port: int | None, *arguments: str) -> Child:
        config, address = f"python:portal.processes.gunicorn_{module}", f"{LOOPBACK}:{port}"
        options = ("--config", config, "--bind", address, "--no-control-socket", *arguments)
        return self._child(name, "gunicorn", *options)

    def _child(self, name: str, program: str, *arguments: str) -> Child:
        return Child(
            name=name,
            argv=[str(VENV_BIN / program), *arguments],
            log=self.logs / f"{name}.log",
            env=self._environment,
            cwd=self.code,
        )


def _status(url: str) -> int:
    """Return the status of the response; 599 without a response."""
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code
    except httpx.TransportError:
        return 599
