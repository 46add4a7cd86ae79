"""Checks of the product's promises against the database and both VPPs, without the product's code."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from drills.checks.double_bookings import double_bookings
from drills.checks.expected_configuration import End, expected_ends, flaws, strays
from drills.checks.vpptestctl import VppConfig, VppRefused, VppTestctl

TERMINAL = ("completed", "failed", "rejected", "cancelled")
POLL_S = 0.25


@dataclass(frozen=True)
class Checker:
    database_url: str
    vpps: dict[str, VppTestctl]
    # Keep one connection per thread, because each new process of PostgreSQL has to plan the queries again.
    _kept: threading.local = field(default_factory=threading.local, repr=False)
    _open: ExitStack = field(default_factory=ExitStack, repr=False)

    def close(self) -> None:
        self._open.close()

    def sql(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connect() as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def connect(self) -> Iterator[psycopg.Connection[Any]]:
        """Yield this thread's connection. A broken connection is replaced. Raises OperationalError."""
        database = getattr(self._kept, "connection", None)
        if database is None or not _is_alive(database):
            database = psycopg.connect(self.database_url, autocommit=True, connect_timeout=5)
            self._open.callback(database.close)
            self._kept.connection = database
        yield database

    def configs(self) -> dict[str, VppConfig]:
        """Return the configurations of both VPPs. Raises VppRefused if a VPP does not respond."""
        return {router: vpp.config() for router, vpp in self.vpps.items()}

    def wanted(self) -> list[End]:
        with self.connect() as database:
            return expected_ends(database)

    # -- at any moment ---------------------------------------------------------------------------

    def violations(self) -> list[str]:
        """Return the violations that can be found while orders are in progress.

        These are double bookings, lines in service that a VPP does not carry as ordered, and resources that
        were released before the routers confirmed the removal. A VLL that changes during the check is not
        checked.
        """
        with self.connect() as database:
            before = _in_service(database)
            terminated = _terminated(database)
            configs = self.configs()
            # The database and the VPPs cannot be read at the same instant. The checker therefore reads the
            # database, then the VPPs, then the database again. Only a VLL that did not change in the database
            # must be complete in the VPPs.
            still = before & _in_service(database)
            found = double_bookings(database)
            unconfirmed = database.execute(_RELEASED_UNCONFIRMED).fetchall()
        found += [f"half-built and in service: {flaw}" for flaw in flaws(sorted(still, key=str), configs)]
        found += [
            f"released, but {router} still has {each['name']} of {each['tag']}"
            for router, config in configs.items()
            for each in config.tagged()
            if each["tag"].split(":")[1] in terminated
        ]
        found += [f"released, but {router} never confirmed {vll} {side}" for vll, side, router in unconfirmed]
        return found

    # -- at rest ---------------------------------------------------------------------------------

    def unrest(self) -> list[str]:
        """Return the reasons why the product has not settled. If it has settled, return the violations.

        The result is empty if the product has settled and there are no violations.
        """
        with self.connect() as database:
            open_orders = database.execute(
                "SELECT id, state FROM vll_order WHERE NOT state = ANY(%s)", [list(TERMINAL)]
            ).fetchall()
            ends = expected_ends(database)
            asleep = database.execute(_NOT_IN_SERVICE).fetchall()
        under_way = [
            *(f"order {identity} is {state}" for identity, state in open_orders),
            *(f"VLL {vll} is {lifecycle}, in_sync {in_sync}" for vll, lifecycle, in_sync in asleep),
        ]
        if under_way:
            return under_way
        configs = self.configs()
        return [*flaws(ends, configs), *strays(ends, configs), *self.violations()]

    def require_rest(self, *, within_s: float) -> None:
        """Wait until the product has settled and there are no violations. Raises AssertionError."""
        last: list[str] = []

        def calm() -> bool:
            nonlocal last
            try:
                last = self.unrest()
            except (psycopg.OperationalError, VppRefused) as error:
                last = [str(error)]
            return not last

        assert wait(calm, timeout_s=within_s), f"no rest within {within_s:g} s: " + "; ".join(last[:10])

    # -- orders ----------------------------------------------------------------------------------

    def states(self, orders: Iterable[str]) -> dict[str, str]:
        rows = self.sql("SELECT id::text, state FROM vll_order WHERE id = ANY(%s::uuid[])", list(orders))
        return dict(rows)

    def require_terminal(self, orders: Iterable[str], *, within_s: float) -> dict[str, str]:
        """Check that all of these orders exist, and that all of them end in time. Return their states."""
        wanted, states = set(orders), {}

        def ended() -> bool:
            nonlocal states
            try:
                states = self.states(wanted)
            except psycopg.OperationalError:
                return False
            return states.keys() == wanted and all(state in TERMINAL for state in states.values())

        in_time = wait(ended, timeout_s=within_s)
        missing = wanted - states.keys()
        assert not missing, f"accepted, but not in the database: {sorted(missing)}"
        late = {order: state for order, state in states.items() if state not in TERMINAL}
        assert in_time, f"not terminal within {within_s:g} s: {late}"
        return states

    def require_completed(self, orders: Iterable[str], *, within_s: float) -> None:
        """Check that there is at least one order and that all of these orders complete in time."""
        states = self.require_terminal(orders, within_s=within_s)
        others = [order for order, state in states.items() if state != "completed"]
        query = "SELECT id, action, state, failure FROM vll_order WHERE id = ANY(%s::uuid[])"
        assert set(states.values()) == {"completed"}, self.sql(query, others)


def wait(condition: Callable[[], bool], *, timeout_s: float, poll_every_s: float = POLL_S) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_every_s)
    return True


_NOT_IN_SERVICE = """
SELECT id, lifecycle, in_sync FROM vll_vll
WHERE lifecycle NOT IN ('terminated', 'cancelled') AND (lifecycle <> 'active' OR NOT in_sync)
"""

# The evidence is only the append-only table of attempts. When the portal releases resources, it reads other
# columns.
_RELEASED_UNCONFIRMED = """
SELECT v.id, e.side, r.name FROM vll_vll v
JOIN vll_vllend e ON e.vll_id = v.id
JOIN inventory_port p ON p.id = e.port_id JOIN inventory_router r ON r.id = p.router_id
WHERE v.lifecycle IN ('terminated', 'cancelled') AND NOT EXISTS (
  SELECT FROM vll_attempt t WHERE t.router_id = r.id AND t.outcome = 'answered' AND t.answer -> 'ends' @>
    jsonb_build_array(jsonb_build_object(
      'vll', v.id::text, 'end', e.side, 'revision', v.revision, 'status', 'removed')))
"""


def _is_alive(database: psycopg.Connection[Any]) -> bool:
    """Return whether the connection still works.

    The database may have failed or been replaced after the last use of the connection.
    """
    try:
        database.execute("SELECT")
    except psycopg.OperationalError:
        return False
    return True


def _in_service(database: psycopg.Connection[Any]) -> set[End]:
    return {end for end in expected_ends(database) if end.lifecycle == "active"}


def _terminated(database: psycopg.Connection[Any]) -> set[str]:
    query = "SELECT id::text FROM vll_vll WHERE lifecycle IN ('terminated', 'cancelled')"
    return {vll for (vll,) in database.execute(query)}
