"""Faults of the deployment while customers order. Each context causes one fault on entry and repairs it on
exit.

The yielded text names the affected machine. All processes are started by the caller's thread.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import httpx

from devstack.folders import ROOT
from drills.ha.cluster import ADDRESSES, APP_UNITS, APPS, BALANCERS, DATABASES, Cluster, wait
from drills.ha.two_primaries import Probes

# This fault begins with an earlier release. It therefore comes first. It is left out if no earlier release is
# given.
UPGRADE = "rolling-upgrade"
_DRAINED_S = 2.0
# Seconds. A program that cannot start has ended by then.
_STARTED_S = 10.0
_BEAT_TAKEN_OVER_S = 30.0
_BALLAST = "/var/lib/postgresql/ballast"
# Writes 50 MiB/s until the disk is full.
_FILL_DISK = f"while head -c 10M /dev/zero >> {_BALLAST}; do sleep 0.2; done"
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


@contextmanager
def primary_killed(cluster: Cluster) -> Iterator[str]:
    """Kill the PostgreSQL and the Patroni of the primary with SIGKILL. The lease of the primary
    then expires.
    """
    primary = cluster.wait_for_role("primary")
    cluster.machines[primary].kill_account("postgres")
    yield f"PostgreSQL and Patroni of {primary}"
    cluster.start_patroni(primary)


@contextmanager
def primary_cut_off(cluster: Cluster) -> Iterator[str]:
    """Unplug the cable of the primary's machine. This also isolates the etcd member and the Redis on it."""
    primary = cluster.wait_for_role("primary")
    with Probes(cluster) as probes:
        # Before the fault, the probes need time to find out which machine accepts writes.
        time.sleep(2)
        cluster.machines[primary].cut_off()
        try:
            yield f"{primary}"
        finally:
            cluster.machines[primary].join()
    print(f"# primary-cut-off: {probes.summary()}", flush=True)
    overlaps = probes.overlaps()
    assert not overlaps, "; ".join(overlaps)


@contextmanager
def standby_killed(cluster: Cluster) -> Iterator[str]:
    """Kill the synchronous standby. Commits wait until the other standby replaces it."""
    standby = cluster.wait_for_role("sync")
    cluster.machines[standby].kill_account("postgres")
    yield f"PostgreSQL and Patroni of {standby}, the synchronous standby"
    cluster.start_patroni(standby)


@contextmanager
def etcd_member_killed(cluster: Cluster) -> Iterator[str]:
    """Kill the etcd member that is the leader."""
    leader = _etcd_leader()
    cluster.machines[leader].children["etcd"].end()
    yield f"etcd's leader, on {leader}"
    cluster.start_etcd(leader)


@contextmanager
def haproxy_killed(cluster: Cluster) -> Iterator[str]:
    """Kill the HAProxy on the machine that has the virtual address."""
    name = cluster.holder_of_virtual_ip()
    cluster.machines[name].children["haproxy"].end()
    yield f"HAProxy of {name}, which had the virtual address"
    cluster.start_haproxy(name)


@contextmanager
def redis_primary_killed(cluster: Cluster) -> Iterator[str]:
    name = cluster.redis_primary()
    cluster.machines[name].children["redis"].end()
    yield f"Redis' primary, on {name}"
    cluster.start_redis(name)


@contextmanager
def machine_killed(cluster: Cluster) -> Iterator[str]:
    """Kill all processes on the portal machine whose beat sends the tasks, like a power failure."""
    [name] = filter(cluster.beat_works, APPS)
    [other] = set(APPS) - {name}
    killed = time.monotonic()
    cluster.machines[name].lose_power()
    wait(lambda: cluster.beat_works(other), f"beat to work on {other}", timeout_s=_BEAT_TAKEN_OVER_S)
    yield f"{name}, without a word; beat worked on {other} after {time.monotonic() - killed:.1f} s"
    cluster.machines[name].join()
    cluster.start_app(name)
    cluster.wait_for_app(name)


@contextmanager
def rolling_restart(cluster: Cluster) -> Iterator[str]:
    """Restart the machines of the portal one after another, as the operator's guide says."""
    for name in APPS:
        with out_of_balancers(cluster, name):
            restart(cluster, name)
    yield "app1, then app2"


@contextmanager
def rolling_upgrade(cluster: Cluster) -> Iterator[str]:
    """Upgrade from an earlier release to this release, in the order of the operator's guide."""
    before = cluster.machines[APPS[0]].code
    for name in APPS:
        cluster.machines[name].install(ROOT)
    cluster.manage(APPS[0], "manage.py", "upgrade")
    workers = tuple(unit for unit in APP_UNITS if unit.startswith("longline-worker@"))
    beat = ("longline-beat",)
    for name in APPS:
        restart(cluster, name, units=workers)
    for name in APPS:
        with out_of_balancers(cluster, name):
            restart(cluster, name, units=tuple(unit for unit in APP_UNITS if unit not in workers + beat))
    for name in APPS:
        restart(cluster, name, units=beat)
    yield f"from {before.name}: the tables, workers, machine by machine, beat"


@contextmanager
def disk_full(cluster: Cluster) -> Iterator[str]:
    """Fill the database's disk until no space is left, as fast as a careless dump would."""
    primary = cluster.wait_for_role("primary")
    machine = cluster.machines[primary]
    machine.run(["sh", "-c", _FILL_DISK])
    try:
        yield f"the disk of PostgreSQL on {primary}"
    finally:
        machine.run(["rm", _BALLAST])


@contextmanager
def clock_off(cluster: Cluster) -> Iterator[str]:
    """Change the time that all programs on the portal's second machine read."""
    name = APPS[1]
    ahead = {"LD_PRELOAD": _FAKETIME, "FAKETIME": "+5s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    ahead["PYTHONPATH"] = "/opt/longline/drills/ha/faketime"
    with out_of_balancers(cluster, name):
        restart(cluster, name, env=ahead)
    yield f"{name} is 5 s ahead"
    with out_of_balancers(cluster, name):
        restart(cluster, name)


FAULTS: dict[str, Callable[[Cluster], AbstractContextManager[str]]] = {
    "primary-killed": primary_killed,
    "primary-cut-off": primary_cut_off,
    "standby-killed": standby_killed,
    "etcd-member-killed": etcd_member_killed,
    "haproxy-killed": haproxy_killed,
    "redis-primary-killed": redis_primary_killed,
    "machine-killed": machine_killed,
    "rolling-restart": rolling_restart,
    "clock-off": clock_off,
    "disk-full": disk_full,
    UPGRADE: rolling_upgrade,
}


def restart(
    cluster: Cluster, name: str, *, units: Sequence[str] = APP_UNITS, env: dict[str, str] | None = None
) -> None:
    cluster.stop_app(name, units=units)
    cluster.start_app(name, units=units, env=env)
    cluster.wait_for_app(name)
    time.sleep(_STARTED_S)
    for unit in units:
        cluster.machines[name].children[unit].raise_if_dead()


@contextmanager
def out_of_balancers(cluster: Cluster, name: str) -> Iterator[None]:
    """Take a machine out of both balancers while it is changed, and put it back afterwards."""
    _balanced(cluster, name, "drain")
    time.sleep(_DRAINED_S)
    yield
    _balanced(cluster, name, "ready")


def _balanced(cluster: Cluster, name: str, state: str) -> None:
    for balancer in BALANCERS:
        for backend in ("web", "web_not_ready", "live", "agents"):
            cluster.balancer(balancer, f"set server {backend}/{name} state {state}")


def _etcd_leader() -> str:
    for name in DATABASES:
        url = f"http://{ADDRESSES[name]}:2379/v3/maintenance/status"
        response = httpx.post(url, json={}, timeout=2, trust_env=False).json()
        if response["leader"] == response["header"]["member_id"]:
            return name
    raise LookupError("etcd has no leader")
