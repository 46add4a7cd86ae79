"""The start of the reference deployment: the steps of deploy/ha/README.md, in the same order."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from devstack.folders import ROOT
from devstack.isp import ALPINE_DAIRY, Port, small_isp
from devstack.process import Family
from drills.ha.cluster import (
    ADDRESSES,
    APPS,
    BALANCERS,
    DATABASES,
    NETWORK,
    PAIRS,
    PORTAL_NAME,
    VIRTUAL_IP,
    WORLD_ADDRESS,
    Cluster,
    etcd_is_healthy,
    wait,
)
from drills.ha.machines import Machine, switched
from drills.ha.units import environment_file

# The size of PostgreSQL's disk on each database machine. It is small, so that a drill can fill it.
_DATABASE_DISK_MIB = 1536


@contextmanager
def running(
    *, folder: Path, logs: Path, synthetic: int, settings: dict[str, str], code: Path = ROOT
) -> Iterator[Cluster]:
    """Run the whole reference deployment with the portal's code in `code`.

    `synthetic` is the number of simulated routers, for which no agent runs. `settings` are added to
    portal.env.
    """
    addresses = ADDRESSES
    with (
        Family() as family,
        switched(addresses, world=WORLD_ADDRESS, folder=folder, logs=logs, family=family) as machines,
    ):
        passwords = _write_configuration(folder, machines, settings)
        isp = small_isp(extra_ports=tuple(Port(f"memif{n}/0", ALPINE_DAIRY) for n in range(1, PAIRS + 1)))
        cluster = Cluster(machines, family, folder, logs, isp, passwords)
        for name, machine in machines.items():
            machine.code = code
            machine.boot(database_disk_mib=_DATABASE_DISK_MIB if name in DATABASES else None)
        _start_databases(cluster)
        for name in BALANCERS:
            cluster.start_haproxy(name)
            cluster.start_keepalived(name)
        _prepare(cluster, synthetic)
        for name in APPS:
            cluster.start_app(name)
        cluster.wait_until_whole(timeout_s=240)
        yield cluster


def _start_databases(cluster: Cluster) -> None:
    for name in DATABASES:
        cluster.start_etcd(name)
        cluster.start_redis(name)
        cluster.start_sentinel(name)
    for name in DATABASES:
        wait(partial(etcd_is_healthy, name), f"etcd on {name}", timeout_s=60)
    first, *others = DATABASES
    cluster.start_patroni(first)
    cluster.wait_for_role("primary", timeout_s=120)
    for name in others:
        cluster.start_patroni(name)
    cluster.wait_for_role("sync", timeout_s=120)
    cluster.wait_for_role("async", timeout_s=120)


def _write_configuration(
    folder: Path, machines: dict[str, Machine], settings: dict[str, str]
) -> dict[str, str]:
    """Give each machine the files that deploy/ha/write-configuration writes. Return the secrets by name."""
    environment = folder / "machines.env"
    lines = [f"{name.upper()}={address}" for name, address in ADDRESSES.items()]
    lines += [f"VIRTUAL_IP={VIRTUAL_IP}", "PREFIX_LENGTH=24", f"NETWORK={NETWORK}.0/24", "INTERFACE=eth0"]
    environment.write_text("\n".join([*lines, f"PORTAL_NAME={PORTAL_NAME}", ""]))
    filled = folder / "filled"
    subprocess.run(
        [str(ROOT / "deploy/ha/write-configuration"), str(filled)],
        env=os.environ | {"MACHINES": str(environment)},
        check=True,
    )
    certificate = web_certificate(folder)
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
    return environment_file(filled / "secrets.env")


def _prepare(cluster: Cluster, synthetic: int) -> None:
    """Create tables, certificates and rows on the first machine of the portal. Copy the certificates to the
    second.
    """
    first, second = (cluster.machines[name] for name in APPS)
    cluster.manage("app1", "manage.py", "upgrade", hasty=True)
    wanted = {
        "world": WORLD_ADDRESS,
        "virtual_ip": VIRTUAL_IP,
        "pairs": PAIRS,
        "synthetic": synthetic,
        "agent_ports": {router.name: 9443 + router.number for router in cluster.isp.agents},
    }
    # The rows of routers without agents are written with triggers and foreign keys disabled.
    cluster.superuser_does("GRANT SET ON PARAMETER session_replication_role TO longline")
    cluster.rows = json.loads(
        cluster.manage("app1", "-m", "drills.ha.prepare", json.dumps(wanted), hasty=True)
    )
    cluster.superuser_does("REVOKE SET ON PARAMETER session_replication_role FROM longline")
    shutil.copytree(first.root / "var/lib/longline/pki", second.root / "var/lib/longline/pki")


def web_certificate(folder: Path) -> str:
    """Return a self-signed certificate for browsers, together with its key."""
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
