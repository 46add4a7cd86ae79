"""Leases per second if 64 clients request VNIs from the whole 24-bit space at the same time."""

import multiprocessing
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from statistics import median
from uuid import uuid4

from bench.database import migrated
from bench.figures import Figure
from bench.sizes import sized

# As with web workers, there are a few processes with several threads each.
PROCESSES, THREADS = sized(4, smallest=2), sized(16, smallest=2)
LEASES_PER_CLIENT = sized(150, smallest=5)

POOL = sized(1_000_000, smallest=1_000)


def measure() -> Iterator[Figure]:
    clients = PROCESSES * THREADS
    with migrated():
        from django.db import connections

        from portal.allocation.models import VniLease

        # A forked child must not use the connection of its parent.
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
            assert worker.exitcode == 0, f"a client ended with {worker.exitcode}"
        elapsed = time.perf_counter() - started
        vnis = VniLease.objects.values_list("vni", flat=True)
        leased = len(set(vnis))
        assert leased == len(vnis) == clients * LEASES_PER_CLIENT, f"{leased} of {len(vnis)} VNIs differ"
        yield Figure(
            "vni_leases_per_s",
            clients * LEASES_PER_CLIENT / elapsed,
            "1/s",
            f"{clients} clients, no duplicates",
        )
        yield Figure(
            "vni_exhausted_ms", _exhausted(), "ms", f"median; a pool of {POOL} VNIs of which none is left"
        )


def _exhausted() -> float:
    """Return the milliseconds until a request is refused because no VNI is free."""
    from django.db import connection

    from portal.allocation.errors import VniPoolExhausted
    from portal.allocation.tunnel_leases import LAST_VNI, vni_lease
    from portal.core.clock import now

    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO allocation_reservedvnirange (first, last, reason) VALUES (%s, %s, 'bench')",
            [POOL + 1, LAST_VNI],
        )
        cursor.execute(
            "INSERT INTO allocation_vnilease (vni, holder, leased_at)"
            " SELECT vni, gen_random_uuid(), now() FROM generate_series(1, %s) AS vni ON CONFLICT DO NOTHING",
            [POOL],
        )
        cursor.execute("VACUUM ANALYZE allocation_vnilease")
    times = []
    for _ in range(9):
        began = time.perf_counter()
        try:
            vni_lease(owner=uuid4(), now=now())
        except VniPoolExhausted:
            times.append((time.perf_counter() - began) * 1_000)
        else:
            raise RuntimeError("a VNI was leased from an exhausted pool")
    return median(times)


def _lease_many(ready: Barrier) -> None:
    def all_connected() -> None:
        ready.wait()

    connected = threading.Barrier(THREADS, action=all_connected)
    with ThreadPoolExecutor(THREADS) as clients:
        for done in [clients.submit(_lease, connected) for _ in range(THREADS)]:
            done.result()


def _lease(connected: threading.Barrier) -> None:
    from django.db import connection

    from portal.allocation.tunnel_leases import vni_lease
    from portal.core.clock import now

    connection.ensure_connection()
    connected.wait()
    for _ in range(LEASES_PER_CLIENT):
        vni_lease(owner=uuid4(), now=now())
    connection.close()
