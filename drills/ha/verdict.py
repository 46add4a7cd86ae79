"""Checks of the promises against the database, without the product's code."""

import time
from dataclasses import dataclass, field
from itertools import pairwise

import psycopg

from drills.checks.double_bookings import double_bookings
from drills.ha.cluster import Cluster
from drills.ha.customers import Accepted, Tally

_ENDED_WITHIN_S = 120
_OPEN = """
SELECT id::text, state FROM vll_order WHERE state NOT IN ('completed', 'failed', 'rejected', 'cancelled')
"""


@dataclass
class Verdict:
    """The result of one fault.

    `lost`: the number of orders that had a 202 response but do not exist. `wrong`: sentences about other
    violations.
    """

    name: str
    accepted: int
    lost: int
    failed_requests: int
    longest_gap_s: float
    reports_taken: int
    reports_lost: int
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"ha {self.name} accepted {self.accepted} lost {self.lost} failed_requests {self.failed_requests}"
            f" longest_gap_s {self.longest_gap_s:.1f}"
        )


def longest_gap_s(accepted: list[Accepted], began: float, ended: float) -> float:
    """Return the longest time, in seconds, between ``began`` and ``ended`` in which no order was accepted."""
    times = [began, *sorted(each.at for each in accepted if began <= each.at <= ended), ended]
    return max(later - earlier for earlier, later in pairwise(times))


def lost_orders(cluster: Cluster, tally: Tally) -> list[str]:
    with psycopg.connect(cluster.database_url, autocommit=True) as database:
        there = {
            row[0]
            for row in database.execute(
                "SELECT id::text FROM vll_order WHERE id = ANY(%s::uuid[])",
                [[a.order for a in tally.accepted]],
            )
        }
        lines = {
            row[0]
            for row in database.execute(
                "SELECT id::text FROM vll_vll WHERE id = ANY(%s::uuid[])", [[a.vll for a in tally.accepted]]
            )
        }
    return [each.order for each in tally.accepted if each.order not in there or each.vll not in lines]


def bookings(cluster: Cluster) -> list[str]:
    """Return sentences about bookings that are missing or booked twice (`drills.checks.double_bookings`)."""
    with psycopg.connect(cluster.database_url, autocommit=True) as database:
        return double_bookings(database)


def flaws(cluster: Cluster, tally: Tally) -> list[str]:
    """Return booking errors, and orders that were executed twice.

    Booking errors that existed before the first order are ignored: the lines of synthetic routers have no
    leases.
    """
    found = [each for each in bookings(cluster) if each not in cluster.known_flaws]
    with psycopg.connect(cluster.database_url, autocommit=True) as database:
        found += [
            f"{n} lines of the one order {key}"
            for key, n in database.execute(
                "SELECT description, count(*) FROM vll_vll WHERE description = ANY(%s)"
                " GROUP BY 1 HAVING count(*) > 1",
                [tally.described],
            )
        ]
    return found


def still_open(cluster: Cluster) -> list[str]:
    """Wait some time until all orders have ended. Return sentences about orders that are still open."""
    deadline = time.monotonic() + _ENDED_WITHIN_S
    while (rows := cluster.sql(_OPEN)) and time.monotonic() < deadline:
        time.sleep(1)
    return [f"order {identity} is still {state}" for identity, state in rows]


def lost_reports(cluster: Cluster, taken: set[tuple[str, int]]) -> int:
    """Return the number of samples that the portal confirmed and that its database does not contain."""
    runs = sorted({run for run, _ in taken})
    rows = cluster.sql(
        "SELECT DISTINCT boot_id::text, seq FROM telemetry_sample WHERE boot_id = ANY(%s::uuid[])", runs
    )
    return len(taken - {(run, seq) for run, seq in rows})
