"""The reference deployment: its machines with their roles, and how to start each of its programs."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from devstack.isp import Isp
from devstack.process import Child, Family
from drills.ha.machines import Machine
from drills.ha.units import command, environment_file

NETWORK = "10.99.0"
WORLD_ADDRESS = f"{NETWORK}.1"
VIRTUAL_IP = f"{NETWORK}.20"
PORTAL_NAME = "portal.example.net"
ADDRESSES = {
    "db1": f"{NETWORK}.11",
    "db2": f"{NETWORK}.12",
    "db3": f"{NETWORK}.13",
    "lb1": f"{NETWORK}.21",
    "lb2": f"{NETWORK}.22",
    "app1": f"{NETWORK}.31",
    "app2": f"{NETWORK}.32",
}
DATABASES, BALANCERS, APPS = ("db1", "db2", "db3"), ("lb1", "lb2"), ("app1", "app2")
# The queues of the reference deployment that have work here. No user has webhooks or a NetBox.
QUEUES = ("provisioning", "sweepers", "doubtful", "telemetry", "batch", "notifications")
APP_UNITS = (
    "longline-web",
    "longline-live",
    "longline-agent-api",
    "longline-beat",
    *(f"longline-worker@{queue}" for queue in QUEUES),
)
# The number of pairs of ports for orders.
PAIRS = 16
_POLL_S = 0.2
# One persistent client. A new client would read the system's certificates, which takes as long as an order.
_http = httpx.Client(verify=False, trust_env=False, timeout=5)  # noqa: S501


class NotReady(Exception):
    """A condition was not met in time. The text names the condition."""


@dataclass
class Cluster:
    machines: dict[str, Machine]
    family: Family
    folder: Path
    logs: Path
    isp: Isp
    passwords: dict[str, str]
    # The output of `drills.ha.prepare`: tokens, ports and the ends of the synthetic routers.
    rows: dict[str, Any] = field(default_factory=dict)
    # The booking errors that existed before the first order.
    known_flaws: set[str] = field(default_factory=set)

    # -- the database ----------------------------------------------------------------------------

    @property
    def database_url(self) -> str:
        """The URL of the current primary, for the checks."""
        hosts = ",".join(ADDRESSES[name] for name in DATABASES)
        ports = ",".join(["5432"] * len(DATABASES))
        return (
            f"host={hosts} port={ports} dbname=longline user=longline target_session_attrs=read-write"
            f" connect_timeout=2 password={self.passwords['POSTGRES_PASSWORD']}"
        )

    def one_database_url(self, machine: str) -> str:
        return (
            f"host={ADDRESSES[machine]} port=5432 dbname=longline user=longline connect_timeout=2"
            f" password={self.passwords['POSTGRES_PASSWORD']}"
        )

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database_url, autocommit=True) as database:
            return database.execute(query, values).fetchall()

    def sql_do(self, statement: str) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as database:
            database.execute(statement)

    def superuser_does(self, statement: str) -> None:
        password = self.passwords["SUPERUSER_PASSWORD"]
        url = f"{self.database_url} user=postgres password={password}"
        with psycopg.connect(url, autocommit=True) as database:
            database.execute(statement)

    def database_role(self, role: str) -> str | None:
        """Return the machine that has the role ``primary``, ``sync`` or ``async`` in Patroni, or None if no
        machine has it.
        """
        for name in DATABASES:
            try:
                response = _http.get(f"http://{ADDRESSES[name]}:8008/{role}", timeout=1)
            except httpx.TransportError:
                continue
            if response.status_code == 200:
                return name
        return None

    def wait_for_role(self, role: str, *, but: str = "", timeout_s: float = 90) -> str:
        found: str | None = None

        def there() -> bool:
            nonlocal found
            found = self.database_role(role)
            return found is not None and found != but

        wait(there, f"a database that is {role}", timeout_s=timeout_s)
        assert found is not None
        return found

    def wait_until_whole(self, timeout_s: float = 120) -> None:
        """Wait until there are a primary and two standbys (one synchronous), and both machines of the portal
        are ready.

        Then wait until the portal responds through the balancers.
        """
        self.wait_for_role("primary", timeout_s=timeout_s)
        self.wait_for_role("sync", timeout_s=timeout_s)
        self.wait_for_role("async", timeout_s=timeout_s)
        for name in APPS:
            self.wait_for_app(name, timeout_s=timeout_s)
        wait(self.responds, "the portal behind the balancers", timeout_s=timeout_s)

    # -- the portal ------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"https://{VIRTUAL_IP}"

    def responds(self) -> bool:
        try:
            response = _http.get(f"{self.url}/readyz", headers={"Host": PORTAL_NAME})
        except httpx.TransportError:
            return False
        return response.status_code == 200

    def _ready(self, app: str) -> bool:
        try:
            url = f"http://{ADDRESSES[app]}:8000/readyz"
            return _http.get(url, headers={"Host": "localhost"}).status_code == 200
        except httpx.TransportError:
            return False

    def start_app(
        self, name: str, *, units: Sequence[str] = APP_UNITS, env: dict[str, str] | None = None
    ) -> None:
        machine = self.machines[name]
        for unit in units:
            machine.start(self._unit(machine, unit, env or {}))

    def stop_app(self, name: str, *, units: Sequence[str] = APP_UNITS) -> None:
        """Stop programs as systemd does: signal all of them, and wait for each until its own timeout."""
        children = [self.machines[name].children[unit] for unit in units]
        for child in children:
            child.signal_stop()
        for child in children:
            child.stop()

    def wait_for_app(self, name: str, timeout_s: float = 120) -> None:
        wait(lambda: self._ready(name), f"{name} to be ready", timeout_s=timeout_s)

    def manage(self, app: str, *arguments: str, hasty: bool = False) -> str:
        """Run a management command and return its output.

        `hasty`: do not wait until a standby has the commits; a failure may lose them. Use it only before the
        first order.
        """
        unit = command("longline-beat", self.machines[app].root)
        argv = ["/opt/longline/.venv/bin/python", *arguments]
        more = {"PGOPTIONS": "-c synchronous_commit=off"} if hasty else {}
        return self.machines[app].run(argv, env=unit.env | more, cwd=unit.cwd)

    def beat_works(self, app: str) -> bool:
        """Return whether the beat on this machine is the beat that sends tasks, according to its log."""
        log = self.machines[app].children["longline-beat"].log.read_text()
        return log.rfind("beat: this one works") > log.rfind("beat: another one works")

    def balancer(self, name: str, order: str) -> str:
        """Send a command to HAProxy's admin socket and return the response. An operator would use socat for
        this.
        """
        path = self.machines[name].root / "run" / "haproxy" / "admin.sock"
        with socket.socket(socket.AF_UNIX) as admin:
            admin.settimeout(5)
            admin.connect(str(path))
            admin.sendall(f"{order}\n".encode())
            return admin.recv(65536).decode()

    def holder_of_virtual_ip(self) -> str:
        for name in BALANCERS:
            shown = subprocess.run(
                ["ip", "-n", self.machines[name].namespace, "-oneline", "address"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            if f" {VIRTUAL_IP}/" in shown:
                return name
        raise NotReady("no balancer has the virtual address")

    def redis_primary(self) -> str:
        for name in DATABASES:
            if "role:master" in self.redis(name, "INFO", "replication"):
                return name
        raise NotReady("no Redis is primary")

    def redis(self, name: str, *arguments: str, port: int = 6379) -> str:
        argv = ["redis-cli", "-h", ADDRESSES[name], "-p", str(port), "--no-auth-warning", *arguments]
        done = subprocess.run(
            argv,
            env=os.environ | {"REDISCLI_AUTH": self.passwords["REDIS_PASSWORD"]},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    # -- programs ---------------------------------------------------------------------------------

    def start_etcd(self, name: str) -> Child:
        machine = self.machines[name]
        env = environment_file(machine.root / "etc/default/etcd")
        return machine.start(machine.child("etcd", ["/usr/bin/etcd"], user="etcd", env=env))

    def start_patroni(self, name: str) -> Child:
        machine = self.machines[name]
        argv = ["/usr/bin/patroni", "/etc/patroni/config.yml"]
        guard = command("patroni-leave-before-full", machine.root)
        machine.start(machine.child("leave-before-full", guard.argv, user=guard.user, env=guard.env))
        return machine.start(machine.child("patroni", argv, user="postgres", grace_s=30))

    def start_redis(self, name: str) -> Child:
        machine = self.machines[name]
        argv = ["/usr/bin/redis-server", "/etc/redis/redis.conf"]
        return machine.start(machine.child("redis", argv, user="redis"))

    def start_sentinel(self, name: str) -> Child:
        machine = self.machines[name]
        argv = ["/usr/bin/redis-server", "/etc/redis/sentinel.conf", "--sentinel"]
        return machine.start(machine.child("sentinel", argv, user="redis"))

    def start_haproxy(self, name: str) -> Child:
        machine = self.machines[name]
        argv = ["/usr/sbin/haproxy", "-W", "-f", "/etc/haproxy/haproxy.cfg"]
        return machine.start(machine.child("haproxy", argv))

    def start_keepalived(self, name: str) -> Child:
        machine = self.machines[name]
        argv = [
            "/usr/sbin/keepalived",
            "--dont-fork",
            "--log-console",
            "--use-file=/etc/keepalived/keepalived.conf",
        ]
        return machine.start(machine.child("keepalived", argv))

    def _unit(self, machine: Machine, unit: str, more: dict[str, str]) -> Child:
        wanted = command(unit, machine.root)
        return machine.child(unit, wanted.argv, env={**wanted.env, **more}, cwd=wanted.cwd, grace_s=30)


def etcd_is_healthy(name: str) -> bool:
    try:
        return '"true"' in _http.get(f"http://{ADDRESSES[name]}:2379/health", timeout=2).text
    except httpx.TransportError:
        return False


def wait(condition: Callable[[], bool], what: str, *, timeout_s: float) -> None:
    """Wait for a condition. Raises NotReady with the text `what` if the condition is not met in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise NotReady(f"waited {timeout_s:g} s for {what}")
        time.sleep(_POLL_S)
