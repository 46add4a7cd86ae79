"""Probes that detect two databases that accept writes at the same time.

On each database machine, one probe writes continuously and directly to the machine's own server.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Self

import psycopg

from devstack.routers import netns
from drills.ha.cluster import DATABASES, Cluster

_EVERY_S = 0.1
# The commit of this statement waits for no standby. Any server that considers itself the primary accepts it.
_WRITE = "INSERT INTO ha_probe (machine) VALUES (%s)"


@dataclass
class Probe:
    """The writes that one machine accepted: (start, end) in monotonic seconds."""

    machine: str
    taken: list[tuple[float, float]] = field(default_factory=list)


class Probes:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        cluster.sql_do("CREATE TABLE IF NOT EXISTS ha_probe (machine text, at timestamptz DEFAULT now())")
        self.probes = [Probe(name) for name in DATABASES]
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._probe_from, args=(probe,)) for probe in self.probes]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def overlaps(self) -> list[str]:
        """Return a sentence for each machine that still accepted a write after another machine had become the
        primary and accepted writes.
        """
        found = []
        for one in self.probes:
            for other in self.probes:
                if one is other or not one.taken or not other.taken:
                    continue
                last = max(ended for _, ended in one.taken)
                first = min(begun for begun, _ in other.taken)
                if one.taken[0][0] < first < last:
                    late = f"{last - first:.2f} s after the first of {other.machine}"
                    found.append(f"{one.machine} took a write {late}")
        return found

    def summary(self) -> str:
        return "; ".join(
            f"{each.machine} took {len(each.taken)} probes" for each in self.probes if each.taken
        )

    def _probe_from(self, probe: Probe) -> None:
        """Write in a loop. The connection begins on the machine itself, so it works without the
        machine's cable.
        """
        machine = self._cluster.machines[probe.machine]
        url = self._cluster.one_database_url(probe.machine)
        database: psycopg.Connection[tuple[object, ...]] | None = None
        while not self._enough.wait(_EVERY_S):
            begun = time.monotonic()
            try:
                if database is None:
                    database = netns.inside(machine.namespace, lambda: psycopg.connect(url, autocommit=True))
                    database.execute("SET synchronous_commit = local")
                database.execute(_WRITE, [probe.machine])
            except psycopg.Error:
                if database is not None and database.closed:
                    database = None
                continue
            probe.taken.append((begun, time.monotonic()))
        if database is not None:
            database.close()
