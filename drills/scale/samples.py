"""Samples during the simulation: memory of processes, queues, rows, and CPU time of processes."""

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import redis

QUEUES = ("provisioning", "telemetry", "batch", "netbox", "doubtful", "sweepers", "notifications", "webhooks")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_WAITING = """
SELECT (SELECT count(*) FROM vll_order WHERE state NOT IN ('completed', 'failed', 'rejected', 'cancelled')),
       (SELECT count(*) FROM telemetry_stale_bucket)
"""
_WORK = """
SELECT xact_commit, tup_inserted + tup_updated + tup_deleted, pg_current_wal_insert_lsn() - '0/0'::pg_lsn,
       pg_database_size(current_database())
FROM pg_stat_database WHERE datname = current_database()
"""


@dataclass(frozen=True, slots=True)
class Work:
    """The work done so far.

    ``cpu_s``: CPU seconds of each process. ``machine_s``: CPU seconds of the whole machine. ``commits``:
    transactions. ``rows``: written rows. ``wal`` and ``disk``: bytes.
    """

    at: float
    cpu_s: Mapping[str, float]
    commits: int
    rows: int
    wal: int
    disk: int
    machine_s: float


@dataclass
class Samples:
    """Time series. ``series`` maps a name to pairs of (seconds, value). ``pids`` maps a program to its first
    process.
    """

    database: psycopg.Connection
    broker: redis.Redis
    pids: Mapping[str, int]
    series: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def take(self) -> None:
        at = time.monotonic()
        families = _families(self.pids)
        for name, members in families.items():
            self.series[f"memory of {name}, MB"].append((at, sum(map(_own_mb, members))))
        for queue in QUEUES:
            waiting = int(self.broker.llen(queue))
            self.series[f"messages in {queue}"].append((at, waiting))
        found = self.database.execute(_WAITING).fetchone()
        assert found is not None
        for name, value in zip(("open orders", "buckets to roll up"), found, strict=True):
            self.series[name].append((at, value))

    def work(self) -> Work:
        found = self.database.execute(_WORK).fetchone()
        assert found is not None
        commits, rows, wal, disk = map(int, found)
        cpu = {name: sum(map(_cpu_s, members)) for name, members in _families(self.pids).items()}
        cpu["the simulation"] = time.process_time()
        return Work(time.monotonic(), cpu, commits, rows, wal, disk, _machine_s())


def _families(pids: Mapping[str, int]) -> dict[str, list[int]]:
    """Return each process with all its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # the process ended in the meantime
        children[parent].append(int(stat.parent.name))

    def all_of(pid: int) -> Iterable[int]:
        yield pid
        for child in children[pid]:
            yield from all_of(child)

    return {name: list(all_of(pid)) for name, pid in pids.items()}


def _own_mb(pid: int) -> float:
    """Return the private memory in MB. The total would include PostgreSQL's shared cache in each of its
    processes.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^RssAnon:\s*(\d+)", status, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def _machine_s() -> float:
    """Return the seconds for which the processors of the machine were not idle (proc(5))."""
    user, nice, system, _, _, irq, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + soft) / _TICKS_PER_S


def _cpu_s(pid: int) -> float:
    """Return the CPU time in seconds, user and system, of the process and of children that it has
    waited for.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S
