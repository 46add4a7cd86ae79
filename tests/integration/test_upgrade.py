"""`manage.py upgrade` on a database of an earlier release: every row stays, and nothing is left to do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from devstack.paths import ROOT
from devstack.services import Services
from tests.integration.older_release import NOW, STOOD_AT

DATABASE = "earlier_release"
# Of everything that this release may not touch, and of what it adds columns to, what was there before.
KEPT = {
    "customers": "SELECT id, name, created_at FROM accounts_customer",
    "lines": "SELECT to_jsonb(vll_vll) FROM vll_vll",
    "ends": "SELECT to_jsonb(vll_vllend) - ARRAY['contested', 'changed_since_report'] FROM vll_vllend"
    " ORDER BY id",
    "orders": "SELECT to_jsonb(vll_order) - 'request_id' FROM vll_order",
    "events": "SELECT to_jsonb(events_event) - 'untold' FROM events_event",
}

_LEFT = """
SELECT router.name, lease.vni, booking.side
FROM vll_vlltombstone stone JOIN inventory_router router ON router.id = stone.router_id
JOIN vll_tombstonetunnel tunnel ON tunnel.tombstone_id = stone.id
JOIN allocation_vnilease lease ON lease.id = tunnel.vni_id
JOIN allocation_corebooking booking ON booking.holder = stone.leases ORDER BY router.name
"""


# What was set aside waits for a decision, and is known when it is sent again.
_SET_ASIDE = """
SELECT router.name, aside.reason, aside.samples, aside.last_ms, aside.offset_ms, aside.state, ends.side,
       example.sample ->> 'seq', run.seqs @> 7::bigint
FROM telemetry_quarantine aside JOIN inventory_router router ON router.id = aside.router_id
JOIN telemetry_quarantinedend ends ON ends.quarantine_id = aside.id
JOIN telemetry_quarantinedsample example ON example.quarantine_id = aside.id
JOIN telemetry_quarantinedrun run ON run.router_id = aside.router_id
"""


@pytest.fixture(scope="module")
def database(private_services: Services) -> Iterator[str]:
    """The URL of a database of its own, as the earlier release left it."""
    server = private_services.database_url
    url = urlsplit(server)._replace(path=f"/{DATABASE}").geturl()
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
        try:
            _wait(_start(url, "-m", "tests.integration.older_release"))
            yield url
        finally:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def _start(url: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _wait(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    with psycopg.connect(url) as connection:
        return {name: connection.execute(query).fetchall() for name, query in KEPT.items()}


def test_two_upgrades_at_a_time_migrate_once_and_keep_every_row(database: str) -> None:
    before = rows(database)
    assert [len(found) for found in before.values()] == [1, 1, 2, 1, 1]
    both = [_start(database, "manage.py", "upgrade") for _ in range(2)]
    said = [_wait(each) for each in both]
    assert sorted("No migrations to apply" in text for text in said) == [False, True]
    (did,) = (text for text in said if "No migrations to apply" not in text)
    assert all(f"Applying {app}." in did for app in STOOD_AT)
    assert rows(database) == before
    with psycopg.connect(database) as connection:
        # Nobody is mailed today of what happened then.
        assert connection.execute("SELECT at, untold FROM events_event").fetchall() == [(NOW, False)]
        # The audit trail follows the tables of today.
        connection.execute("UPDATE vll_vll SET description = 'ZRH-AMS 2'")
        assert connection.execute("SELECT description FROM audit_vllevent").fetchall() == [("ZRH-AMS 2",)]
        expected = ("rhino", "negative", 1, 11_000, None, "undecided", "a", "7", True)
        assert connection.execute(_SET_ASIDE).fetchall() == [expected]
        # What two old routers may have is named with each, and what they keep of cores goes back one by one.
        assert connection.execute(_LEFT).fetchall() == [("panda", 4711, "z"), ("zebra", 4711, "a")]
    assert "No migrations to apply" in _wait(_start(database, "manage.py", "upgrade"))
    _wait(_start(database, "manage.py", "migrate", "--check"))
