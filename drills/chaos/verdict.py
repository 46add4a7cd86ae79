"""Compare the state after the storm with the promises, and return one sentence for each error."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg

from drills.checks.double_bookings import double_bookings
from drills.checks.expected_configuration import End, expected_ends, flaws, released_ends, strays
from drills.checks.vpptestctl import VppConfig

OPEN = "SELECT id::text, action, state FROM vll_order WHERE state <> ALL(%s)"
TERMINAL = ["completed", "failed", "rejected", "cancelled"]
# Lines that are not settled: neither in service nor suspended nor ended, or not confirmed by a router.
_UNSETTLED = """
SELECT id::text, lifecycle, in_sync FROM vll_vll
WHERE lifecycle NOT IN ('terminated', 'cancelled')
  AND NOT (in_sync AND (lifecycle IN ('active', 'suspended')
                        OR (lifecycle = 'pendingTerminate' AND decommission_at IS NOT NULL
                            AND wanted_present)))
"""
_TOMBSTONES = "SELECT vll_id::text, side FROM vll_vlltombstone"
_LEASED = """
SELECT 'VNI ' || vni, holder FROM allocation_vnilease WHERE released_at IS NULL
UNION ALL SELECT 'GRE key ' || gre_key, holder FROM allocation_grekeylease WHERE released_at IS NULL
UNION ALL SELECT 'pair of addresses ' || low, holder FROM allocation_grepairlease WHERE released_at IS NULL
UNION ALL SELECT 'VLANs ' || keys::text || ' of port ' || port_id, holder FROM allocation_portvlanlease
UNION ALL SELECT cir_bps || ' bit/s of port ' || port_id, holder FROM allocation_bandwidthbooking
UNION ALL SELECT load || ' of the cores of router ' || router_id, holder FROM allocation_corebooking
"""
_POLICED = """
SELECT r.name, 'longline:' || v.id || ':' || e.side, e.policed, v.cir_bps / 1000 FROM vll_vll v
JOIN vll_vllend e ON e.vll_id = v.id JOIN inventory_port p ON p.id = e.port_id
JOIN inventory_router r ON r.id = p.router_id
WHERE v.wanted_present AND v.lifecycle NOT IN ('terminated', 'cancelled')
"""
_POLICER = re.compile(r'Name "(longline:[^"]*)" type \S+ cir (\d+) ')
_ENDED = "SELECT action, state, failure ->> 'code', count(*) FROM vll_order GROUP BY 1, 2, 3 ORDER BY 4 DESC"


@dataclass(frozen=True)
class Verdict:
    """Check the portal and its routers after a drill.

    ``url`` and ``token`` are for the REST API with the rights of the NOC.
    """

    database_url: str
    url: str
    token: str

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a query and return its rows. Raises OperationalError."""
        with psycopg.connect(self.database_url, autocommit=True, connect_timeout=5) as database:
            return database.execute(query, values).fetchall()

    def open_orders(self) -> list[str]:
        return [f"order {order} ({action}) is {state}" for order, action, state in self.sql(OPEN, TERMINAL)]

    def unsettled(self) -> list[str]:
        """Return the reasons why the product has not settled, according to the database."""
        return [
            *self.open_orders(),
            *(
                f"line {vll} is {lifecycle}, {'in sync' if in_sync else 'not in sync'}"
                for vll, lifecycle, in_sync in self.sql(_UNSETTLED)
            ),
            *(f"line {vll}'s end {side} is still to go from a router" for vll, side in self.sql(_TOMBSTONES)),
        ]

    def lines(self) -> list[str]:
        """Return the ids of the lines that have not ended."""
        query = "SELECT id::text FROM vll_vll WHERE lifecycle NOT IN ('terminated', 'cancelled')"
        return [vll for (vll,) in self.sql(query)]

    def released_ends(self) -> list[End]:
        """Return the ends that the portal has released and that may still exist in a VPP."""
        with psycopg.connect(self.database_url, autocommit=True) as database:
            return released_ends(database)

    def still_leased(self) -> list[str]:
        """Return a sentence for each lease. Call it when no line is left: then no lease may exist."""
        return [f"{what} is leased by {owner}, and no line is left" for what, owner in self.sql(_LEASED)]

    def ends_of_orders(self) -> list[str]:
        """Return the number of orders by action and final state, for the log."""
        return [
            f"{count} {action} {state}{f' ({code})' if code else ''}"
            for action, state, code, count in self.sql(_ENDED)
        ]

    def against_promises(self, promised: Iterable[str], *, unanswered: int) -> Iterator[str]:
        """Yield orders that were promised and do not exist, and differences between the database and the API.

        ``unanswered``: the number of requests without a response. If the number of orders without a promise
        is higher, yield a sentence about these orders too.
        """
        existing = dict(self.sql("SELECT id::text, state FROM vll_order"))
        expected = set(promised)
        for order in sorted(expected - existing.keys()):
            yield f"order {order} was accepted and does not exist"
        # The portal may have executed a request without a response, but at most once.
        if len(more := existing.keys() - expected) > unanswered:
            yield f"{len(more)} orders exist that no customer sent, {unanswered} had no response"
        yield from self._against_the_api(existing)

    def _against_the_api(self, orders: dict[str, str]) -> Iterator[str]:
        """Yield differences between the API and the database."""
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False) as api:
            reported = {each["id"]: each["state"] for each in _all(api, "/api/v1/orders")}
            lines = {each["id"]: each for each in _all(api, "/api/v1/vlls")}
        for order, state in orders.items():
            if reported.get(order) != state:
                yield f"order {order} is {state}, and the API says {reported.get(order)}"
        rows = self.sql("SELECT id::text, lifecycle, admin_status, vni FROM vll_vll")
        for vll, *facts in rows:
            found = lines.get(vll)
            shown = found and [found["lifecycle"], found["admin_status"], found["vni"]]
            if shown != facts:
                yield f"line {vll} is {facts}, and the API says {shown}"

    def against_vpp(self, configs: dict[str, VppConfig]) -> Iterator[str]:
        """Yield missing and superfluous objects of the portal in the VPPs, and resources that are booked
        twice.
        """
        with psycopg.connect(self.database_url, autocommit=True) as database:
            ends = expected_ends(database)
            yield from flaws(ends, configs)
            yield from strays(ends, configs)
            yield from double_bookings(database)

    def against_policers(self, router: str, shown: list[str]) -> Iterator[str]:
        """Yield ends whose policer is missing or has a wrong rate, and policers without an end.

        A policed end needs a policer whose rate in kbit/s is the end's rate. ``shown``: the output of VPP's
        command about policers.
        """
        found = {name: int(cir) for row in shown for name, cir in _POLICER.findall(row)}
        for where, name, policed, kbps in self.sql(_POLICED):
            if where == router:
                cir = found.pop(name, None)
                if policed and cir != kbps:
                    yield f"{router}: policer {name} has a CIR of {cir} kbit/s and not of {kbps}"
        for name in found:
            yield f"{router}: policer {name} belongs to no end"


def difference(before: dict[str, list[str]], after: dict[str, list[str]], *, where: str) -> Iterator[str]:
    """Yield the differences between two configurations of the VPP ``where``."""
    for command, rows in before.items():
        for row in rows:
            if row not in after[command]:
                yield f"{where}: {command} no longer says: {row}"
        for row in after[command]:
            if row not in rows:
                yield f"{where}: {command} says for the first time: {row}"


def _all(api: httpx.Client, path: str) -> Iterator[dict[str, Any]]:
    page: str | None = f"{path}?limit=200"
    while page:
        body = api.get(page).raise_for_status().json()
        yield from body["results"]
        page = body["next"]
