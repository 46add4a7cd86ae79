"""Behind a pooler that gives each transaction another session: no code needs a session, or it bypasses it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from devstack.databases import pgbouncer
from devstack.process import LOOPBACK, free_ports
from portal.accounts.models import Customer, User
from portal.audit.models import EVENTS
from portal.core.db.sessions import direct_parameters
from portal.vll.models import Vll
from tests.integration.allocation.test_allocation_races import at_once
from tests.integration.api.test_api_v1 import body, client
from tests.integration.database_url import database_url
from tests.integration.isp import Isp, member
from tests.integration.leases import sums_are_right
from tests.integration.live_process import live_process

pytestmark = pytest.mark.django_db(transaction=True)
# Fewer sessions than clients, so that several clients share each session.
SESSIONS = 2


@pytest.fixture(autouse=True)
def pooled(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Connect to the database through PgBouncer, and yield the environment of a process that does so too."""
    at, direct_url = connection.settings_dict, database_url()
    direct = {name: at[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")}
    (port,) = free_ports(1)
    try:
        running = pgbouncer.running(
            folder=tmp_path / "pooler", log=tmp_path / "log", port=port, before=direct_url, sessions=SESSIONS
        )
        with running as pooler:
            connection.close()
            settings.DATABASE_DIRECT = direct
            monkeypatch.setitem(at, "HOST", LOOPBACK)
            monkeypatch.setitem(at, "PORT", str(port))
            monkeypatch.setitem(at, "DISABLE_SERVER_SIDE_CURSORS", True)
            monkeypatch.setitem(at, "OPTIONS", at["OPTIONS"] | {"prepare_threshold": None})
            yield {"DATABASE_URL": pooler.url, "DATABASE_DIRECT_URL": direct_url}
            connection.close()
    except pgbouncer.PgbouncerMissing as missing:
        pytest.skip(str(missing))


def test_concurrent_orders_are_complete_and_attributed_to_their_users(isp: Isp, dairy: Customer) -> None:
    users = [member(f"operator{number}", dairy, "operator") for number in range(6)]

    def place(number: int) -> int:
        document = body(isp, cir_bps=1_000_000, description=f"by {number}")
        document["a_end"]["outer_vlan"] = 200 + number
        document["z_end"] = document["a_end"] | {"port": isp.ports["hippo:host-cust1"].pk}
        return int(client(users[number]).post("/api/v1/vlls", document, format="json").status_code)

    assert at_once(len(users), place) == [202] * len(users)
    assert sums_are_right()
    placed = EVENTS[Vll].objects.filter(pgh_label="insert").values_list("description", "pgh_context__user")
    assert set(placed) == {(f"by {number}", user.pk) for number, user in enumerate(users)}


def test_rows_are_read_in_pieces_outside_transactions(isp: Isp, dairy: Customer) -> None:
    assert (
        at_once(4, lambda _: [each.name for each in Customer.objects.iterator(1)]) == [["Alpine Dairy"]] * 4
    )


def test_code_that_needs_a_session_bypasses_the_pooler(
    isp: Isp, alice: User, vll: Vll, pooled: dict[str, str]
) -> None:
    with psycopg.connect(**direct_parameters(), autocommit=True) as session:
        session.execute("LISTEN word")
        with connection.cursor() as cursor:
            cursor.execute("NOTIFY word, 'heard'")
        assert [each.payload for each in session.notifies(timeout=5, stop_after=1)] == ["heard"]
    with live_process(pooled) as live:
        page = live.page(alice, f"line:{vll.pk}").follows()
        Vll.objects.filter(pk=vll.pk).update(description="changed")
        assert page.event() == ("changed", f"line:{vll.pk}")
