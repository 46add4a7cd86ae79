"""Leases per second when 64 clients at once want VNIs out of the whole 24-bit space."""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from uuid import uuid4

from bench.database import migrated
from bench.figures import Figure

# As web workers are: a few processes of several threads each.
PROCESSES, THREADS = 4, 16
LEASES_PER_CLIENT = 150


def measure() -> Iterator[Figure]:
    clients = PROCESSES * THREADS
    with migrated():
        from django.db import connections

        from portal.allocation.models import VniLease

        # A forked child must not use its parent's connection.
        connections.close_all()
        fork = multiprocessing.get_context("fork")
        ready = fork.Barrier(PROCESSES + 1)
        workers = [fork.Process(target=_lease_many, args=(ready,)) for _ in range(PROCESSES)]
        for worker in workers:
            worker.start()
        ready.wait()
        started = time.perf_counter()
        for worker in workers:
            worker.join()
        elapsed = time.perf_counter() - started
        vnis = VniLease.objects.values_list("vni", flat=True)
        leased, different = len(vnis), len(set(vnis))
        yield Figure(
            "vni_leases_per_s",
            clients * LEASES_PER_CLIENT / elapsed,
            "1/s",
            f"{clients} clients, {leased - different} duplicates",
        )


def _lease_many(ready: Barrier) -> None:
    def everybody_is_here() -> None:
        ready.wait()

    connected = threading.Barrier(THREADS, action=everybody_is_here)
    with ThreadPoolExecutor(THREADS) as clients:
        for done in [clients.submit(_lease, connected) for _ in range(THREADS)]:
            done.result()


def _lease(connected: threading.Barrier) -> None:
    from django.db import connection

    from portal.allocation.vnis import vni_lease
    from portal.core.clock import now

    connection.ensure_connection()
    connected.wait()
    for _ in range(LEASES_PER_CLIENT):
        vni_lease(holder=uuid4(), now=now())
    connection.close()
