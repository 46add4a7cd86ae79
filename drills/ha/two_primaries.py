"""Whether two databases ever take writes at once: each is asked on its own machine, again and again."""

import threading
import time
from dataclasses import dataclass, field
from typing import Self

import psycopg

from devstack import netns
from drills.ha.cluster import DATABASES, Cluster

_EVERY_S = 0.1
# The strictest question: a commit that waits for no standby is taken by whoever believes to be primary.
_WRITE = "INSERT INTO ha_probe (machine) VALUES (%s)"


@dataclass
class Probe:
    """(begun, ended) of each write that a machine took, in monotonic seconds."""

    machine: str
    taken: list[tuple[float, float]] = field(default_factory=list)


class Probes:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        cluster.sql_do("CREATE TABLE IF NOT EXISTS ha_probe (machine text, at timestamptz DEFAULT now())")
        self.probes = [Probe(name) for name in DATABASES]
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on, args=(probe,)) for probe in self.probes]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def overlaps(self) -> list[str]:
        """A write of one machine that began before another's later one had ended, and ended after it began:
        any write of the one between two writes of the other."""
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

    def told(self) -> str:
        return "; ".join(
            f"{each.machine} took {len(each.taken)} probes" for each in self.probes if each.taken
        )

    def _ask_on(self, probe: Probe) -> None:
        """A connection from the machine itself, which its cable is not needed for."""
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
