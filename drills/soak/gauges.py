"""The measured figures of a soak: memory and open files of processes, tables, connections and queues."""

import os
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis

from devstack.process import Child, descendants
from devstack.services import Services

MEGABYTE = 1_000_000
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TABLES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
QUEUES = ("provisioning", "doubtful", "sweepers", "telemetry", "batch", "notifications", "webhooks", "netbox")


@dataclass(frozen=True, slots=True)
class Reading:
    """A measured value. Readings of the same figure have the same ``name`` and ``unit``."""

    name: str
    value: float
    unit: str


def of_process(name: str, child: Child) -> list[Reading]:
    """Return the memory in MB and the number of open files of a process with all its descendants."""
    memory, files = 0, 0
    for pid in [child.process.pid, *descendants(child.process.pid)]:
        try:
            memory += _private_bytes(pid)
            files += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            # The process has ended in the meantime.
            continue
    return [Reading(f"memory {name}", memory / MEGABYTE, "MB"), Reading(f"files {name}", files, "files")]


def of_services(services: Services) -> list[Reading]:
    """Return the sizes in MB of the database and of each table with its indexes, and the numbers of
    connections and of queued messages.
    """
    with psycopg.connect(services.database_url, autocommit=True) as database:
        tables = database.execute(_TABLES).fetchall()
        [(whole,)] = database.execute("SELECT pg_database_size(current_database())").fetchall()
        [(connections,)] = database.execute("SELECT count(*) FROM pg_stat_activity").fetchall()
    with redis.Redis.from_url(services.redis_url) as broker:
        waiting = sum(broker.llen(queue) for queue in QUEUES)
    return [
        *(Reading(f"table {name}", size / MEGABYTE, "MB") for name, size in tables),
        Reading("database", whole / MEGABYTE, "MB"),
        Reading("connections", connections, "connections"),
        Reading("queued messages", waiting, "messages"),
    ]


def _private_bytes(pid: int) -> int:
    """Return the resident memory without file mappings. Memory pages that forked processes share are counted
    once per process.
    """
    resident, shared = (int(each) for each in Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    return (resident - shared) * _PAGE
