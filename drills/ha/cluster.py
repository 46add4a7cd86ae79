"""The reference deployment, up and answering: what deploy/ha/README.md has people start, in its order."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from devstack.isp import ALPINE_DAIRY, Isp, Port, small_isp
from devstack.paths import ROOT
from devstack.process import Child, Family
from drills.ha.machines import Machine, switched
from drills.ha.units import command

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
# Those of the reference that have work here: nobody sends webhooks or has a NetBox.
QUEUES = ("provisioning", "sweepers", "doubtful", "telemetry", "notifications")
APP_UNITS = (
    "longline-web",
    "longline-live",
    "longline-agent-api",
    "longline-relay",
    "longline-beat",
    *(f"longline-worker@{queue}" for queue in QUEUES),
)
# Of PostgreSQL on each database machine: small, so that it can be filled.
DATABASE_DISK_MIB = 1536
# Pairs of ports that orders are placed between.
PAIRS = 16
_POLL_S = 0.2
# Kept: a client that reads the system's authorities anew each time costs as much as an order.
_http = httpx.Client(verify=False, trust_env=False, timeout=5)  # noqa: S501


class NotThere(Exception):
    """Something was not there in time; the text says what."""


@dataclass
class Cluster:
    machines: dict[str, Machine]
    family: Family
    folder: Path
    logs: Path
    isp: Isp
    passwords: dict[str, str]
    # What `drills.ha.prepare` printed: tokens, ports and the synthetic routers.
    rows: dict[str, Any] = field(default_factory=dict)
    # What was booked amiss before anybody ordered.
    known_flaws: set[str] = field(default_factory=set)

    # -- the database ----------------------------------------------------------------------------

    @property
    def database_url(self) -> str:
        """For whoever checks: the primary, whichever it is."""
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
        """The machine that Patroni calls ``primary``, ``sync`` or ``async``; None while there is none."""
        for name in DATABASES:
            try:
                answer = _http.get(f"http://{ADDRESSES[name]}:8008/{role}", timeout=1)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
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
        """One primary, one synchronous standby and one more; both balancers; both machines of the portal."""
        self.wait_for_role("primary", timeout_s=timeout_s)
        self.wait_for_role("sync", timeout_s=timeout_s)
        self.wait_for_role("async", timeout_s=timeout_s)
        for name in APPS:
            wait(lambda name=name: self._ready(name), f"{name} to be ready", timeout_s=timeout_s)
        wait(self.answers, "the portal behind the balancers", timeout_s=timeout_s)

    # -- the portal ------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"https://{VIRTUAL_IP}"

    def answers(self) -> bool:
        try:
            answer = _http.get(f"{self.url}/readyz", headers={"Host": PORTAL_NAME})
        except httpx.TransportError:
            return False
        return answer.status_code == 200

    def _ready(self, app: str) -> bool:
        try:
            url = f"http://{ADDRESSES[app]}:8000/readyz"
            return _http.get(url, headers={"Host": "localhost"}).status_code == 200
        except httpx.TransportError:
            return False

    def start_app(self, name: str, *, env: dict[str, str] | None = None) -> None:
        machine = self.machines[name]
        for unit in APP_UNITS:
            machine.start(self._unit(machine, unit, env or {}))

    def stop_app(self, name: str) -> None:
        """As systemd would: all are asked, each has its time."""
        children = [self.machines[name].children[unit] for unit in APP_UNITS]
        for child in children:
            child.ask_to_stop()
        for child in children:
            child.stop()

    def wait_for_app(self, name: str, timeout_s: float = 120) -> None:
        wait(lambda: self._ready(name), f"{name} to be ready", timeout_s=timeout_s)

    def manage(self, app: str, *arguments: str) -> str:
        unit = command("longline-relay", self.machines[app].root)
        argv = ["/opt/longline/.venv/bin/python", *arguments]
        # Before anybody orders: what is made here may be lost with a machine, and then the drill is.
        hasty = {"PGOPTIONS": "-c synchronous_commit=off"}
        return self.machines[app].run(argv, env=unit.env | hasty, cwd=unit.cwd)

    def balancer(self, name: str, order: str) -> str:
        """Say this to HAProxy's admin socket, as an operator does with socat."""
        import socket

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
        raise NotThere("no balancer has the virtual address")

    def redis_primary(self) -> str:
        for name in DATABASES:
            if "role:master" in self.redis(name, "INFO", "replication"):
                return name
        raise NotThere("no Redis is primary")

    def redis(self, name: str, *words: str, port: int = 6379) -> str:
        argv = ["redis-cli", "-h", ADDRESSES[name], "-p", str(port), "--no-auth-warning", *words]
        done = subprocess.run(
            argv,
            env=os.environ | {"REDISCLI_AUTH": self.passwords["REDIS_PASSWORD"]},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    # -- the engines -----------------------------------------------------------------------------

    def start_etcd(self, name: str) -> Child:
        machine = self.machines[name]
        env = _defaults(machine.root / "etc/default/etcd")
        return machine.start(machine.child("etcd", ["/usr/bin/etcd"], user="etcd", env=env))

    def start_patroni(self, name: str) -> Child:
        machine = self.machines[name]
        argv = ["/usr/bin/patroni", "/etc/patroni/config.yml"]
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
        argv = ["/usr/sbin/haproxy", "-W", "-db", "-f", "/etc/haproxy/haproxy.cfg"]
        return machine.start(machine.child("haproxy", argv[:2] + argv[3:]))

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
        return machine.child(unit, wanted.argv, env={**wanted.env, **more}, cwd=wanted.cwd, grace_s=60)


@contextmanager
def running(*, folder: Path, logs: Path, synthetic: int, settings: dict[str, str]) -> Iterator[Cluster]:
    """All of it; `synthetic` routers report without having an agent, `settings` come on top of portal.env."""
    addresses = ADDRESSES
    with (
        Family() as family,
        switched(addresses, world=WORLD_ADDRESS, folder=folder, logs=logs, family=family) as machines,
    ):
        passwords = _fill(folder, machines, settings)
        isp = small_isp(extra_ports=tuple(Port(f"memif{n}/0", ALPINE_DAIRY) for n in range(1, PAIRS + 1)))
        cluster = Cluster(machines, family, folder, logs, isp, passwords)
        for name, machine in machines.items():
            machine.boot(database_disk_mib=DATABASE_DISK_MIB if name in DATABASES else None)
        _start_databases(cluster)
        for name in BALANCERS:
            cluster.start_haproxy(name)
            cluster.start_keepalived(name)
        _prepare(cluster, synthetic)
        for name in APPS:
            cluster.start_app(name)
        cluster.wait_until_whole(timeout_s=240)
        yield cluster


def wait(condition: Callable[[], bool], what: str, *, timeout_s: float) -> None:
    """Raises NotThere, with `what`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise NotThere(f"waited {timeout_s:g} s for {what}")
        time.sleep(_POLL_S)


def _start_databases(cluster: Cluster) -> None:
    for name in DATABASES:
        cluster.start_etcd(name)
        cluster.start_redis(name)
        cluster.start_sentinel(name)
    for name in DATABASES:
        url = f"http://{ADDRESSES[name]}:2379/health"
        wait(lambda url=url: _says(url, '"true"'), f"etcd on {name}", timeout_s=60)
    first, *others = DATABASES
    cluster.start_patroni(first)
    cluster.wait_for_role("primary", timeout_s=120)
    for name in others:
        cluster.start_patroni(name)
    cluster.wait_for_role("sync", timeout_s=120)
    cluster.wait_for_role("async", timeout_s=120)


def _fill(folder: Path, machines: dict[str, Machine], settings: dict[str, str]) -> dict[str, str]:
    """What deploy/ha/fill writes, where each machine reads it; the secrets by their names."""
    environment = folder / "machines.env"
    lines = [f"{name.upper()}={address}" for name, address in ADDRESSES.items()]
    lines += [f"VIRTUAL_IP={VIRTUAL_IP}", "PREFIX_LENGTH=24", f"NETWORK={NETWORK}.0/24", "INTERFACE=eth0"]
    environment.write_text("\n".join([*lines, f"PORTAL_NAME={PORTAL_NAME}", ""]))
    filled = folder / "filled"
    subprocess.run(
        [str(ROOT / "deploy/ha/fill"), str(filled)],
        env=os.environ | {"MACHINES": str(environment)},
        check=True,
    )
    certificate = _certificate(folder)
    for name, machine in machines.items():
        etc = machine.root / "etc"
        shutil.copytree(filled / name / "etc", etc, dirs_exist_ok=True)
        own: list[tuple[str, str | None]] = [("run", None)]
        if name in DATABASES:
            own = [
                ("etc/patroni", "postgres"),
                ("var/lib/postgresql", "postgres"),
                ("run/postgresql", "postgres"),
            ]
            own += [("etc/redis", "redis"), ("var/lib/redis", "redis"), ("var/lib/etcd", "etcd")]
        elif name in BALANCERS:
            own = [("run/haproxy", None), ("var/lib/haproxy", None)]
            (etc / "haproxy/portal.pem").write_text(certificate)
        else:
            own = [("run/longline", None), ("var/lib/longline", None)]
            with (etc / "longline/portal.env").open("a") as file:
                file.writelines(f"{key}={value}\n" for key, value in settings.items())
        for path, user in own:
            (machine.root / path).mkdir(parents=True, exist_ok=True)
            if user is not None:
                subprocess.run(["chown", "-R", f"{user}:{user}", str(machine.root / path)], check=True)
    return _defaults(filled / "secrets.env")


def _prepare(cluster: Cluster, synthetic: int) -> None:
    """Tables, certificates and rows, from one machine of the portal; the other gets the certificates."""
    first, second = (cluster.machines[name] for name in APPS)
    cluster.manage("app1", "manage.py", "upgrade")
    wanted = {
        "world": WORLD_ADDRESS,
        "virtual_ip": VIRTUAL_IP,
        "pairs": PAIRS,
        "synthetic": synthetic,
        "agent_ports": {router.name: 9443 + router.number for router in cluster.isp.agents},
    }
    # Rows of routers without agents are written past the rules for what people do.
    cluster.superuser_does("GRANT SET ON PARAMETER session_replication_role TO longline")
    cluster.rows = json.loads(cluster.manage("app1", "-m", "drills.ha.prepare", json.dumps(wanted)))
    cluster.superuser_does("REVOKE SET ON PARAMETER session_replication_role FROM longline")
    shutil.copytree(first.root / "var/lib/longline/pki", second.root / "var/lib/longline/pki")


def _defaults(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def _certificate(folder: Path) -> str:
    """For browsers: signed by itself, with its key."""
    key, certificate = folder / "web.key", folder / "web.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-days", "2", "-subj", f"/CN={PORTAL_NAME}", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate.read_text() + key.read_text()


def _says(url: str, text: str) -> bool:
    try:
        return text in _http.get(url, timeout=2).text
    except httpx.TransportError:
        return False
