"""Graphs, lists and exports read from a streaming replica, with exceptions that read from the primary."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import BigIntegerField

from devstack.databases import postgres
from devstack.process import Child, free_ports
from portal.accounts.models import Membership, User
from portal.core.db import replica
from portal.core.db.row_conditions import is_one_of
from portal.core.db.statements import CompiledQuery
from portal.core.environment import read_database_url
from portal.inventory.models import Port
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.database_url import database_url
from tests.integration.isp import Isp
from tests.integration.orders import end, order

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_S = 60
_SIDES = {"a": "rhino", "z": "hippo"}


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def standby(tmp_path_factory: Any, settings: Any) -> Iterator[Child]:
    """Run a replica of the tests' server, with the same rows, and configure the portal to use it."""
    folder: Path = tmp_path_factory.mktemp("replica")
    (port,) = free_ports(1)
    with postgres.replica(
        of=database_url(), folder=folder / "server", log=folder / "replica.log", port=port
    ) as server:
        replica_settings = read_database_url(server.url, variable="DATABASE_REPLICA_URL", takes_writes=False)
        connections.databases[replica.ALIAS] = {
            **connection.settings_dict,
            **replica_settings,
            "OPTIONS": {**replica_settings["OPTIONS"], "options": "-c default_transaction_read_only=on"},
        }
        on_replica = connections[replica.ALIAS]

        def connect() -> None:
            """Connect despite Django's tests, which allow connections only to databases that they created."""
            if on_replica.connection is None:
                with on_replica.wrap_database_errors:
                    on_replica.connect()

        on_replica.ensure_connection = connect  # type: ignore[method-assign]
        replica._Pause.until = 0.0
        cache.clear()
        # On a slow machine the replica may be late.
        settings.LONGLINE_REPLICA_MAX_AGE_S = 3600
        try:
            yield server.child
        finally:
            connections[replica.ALIAS].close()
            del connections[replica.ALIAS]
            del connections.databases[replica.ALIAS]


def replayed() -> bool:
    """Return whether the replica has replayed everything that is committed."""
    with connection.cursor() as primary, connections[replica.ALIAS].cursor() as on_replica:
        primary.execute("SELECT pg_current_wal_insert_lsn()")
        (written,) = primary.fetchone()
        on_replica.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [written])
        return bool(on_replica.fetchone()[0])


def pause_replay(paused: bool) -> None:
    with connections[replica.ALIAS].cursor() as on_replica:
        on_replica.execute(f"SELECT pg_wal_replay_{'pause' if paused else 'resume'}()")
        if paused:
            until(lambda: _state(on_replica) == "paused")


def _state(on_replica: Any) -> str:
    on_replica.execute("SELECT pg_get_wal_replay_pause_state()")
    (state,) = on_replica.fetchone()
    return str(state)


def test_lists_graphs_and_exports_come_from_the_replica_and_show_their_time(
    isp: Isp, alice: User, standby: Child
) -> None:
    first = order(isp, alice).vll
    until(replayed)
    pause_replay(True)
    ends = {f"{side}_end": end(isp, f"{router}:host-cust1", outer=7) for side, router in _SIDES.items()}
    second = order(isp, alice, **ends).vll
    api, before = client(alice), datetime.now(tz=UTC)
    listed = api.get("/api/v1/vlls")
    assert [row["id"] for row in listed.json()["results"]] == [str(first.pk)]
    as_of = datetime.fromisoformat(listed[replica.AS_OF])
    assert before - timedelta(hours=1) < as_of < before
    exported = api.get("/api/v1/vlls.csv")
    assert str(second.pk) not in b"".join(exported.streaming_content).decode()
    assert exported[replica.AS_OF]
    for graph in ("throughput", "latency", "availability", "loss", "policing", "percentiles"):
        # The line itself was queried from the primary.
        assert api.get(f"/api/v1/vlls/{second.pk}/{graph}")[replica.AS_OF], graph
    # A single line, and everything that decides, is read from the primary.
    alone = api.get(f"/api/v1/vlls/{second.pk}")
    assert alone.status_code == 200
    assert replica.AS_OF not in alone
    pause_replay(False)
    until(replayed)
    assert len(api.get("/api/v1/vlls").json()["results"]) == 2


def test_former_member_sees_nothing_although_the_replica_is_outdated(
    isp: Isp, alice: User, standby: Child
) -> None:
    order(isp, alice)
    until(replayed)
    pause_replay(True)
    Membership.objects.filter(user=alice).delete()
    response = client(alice).get("/api/v1/vlls")
    assert response[replica.AS_OF]
    assert response.json()["results"] == []


def test_user_reads_their_own_write_immediately(isp: Isp, alice: User, standby: Child) -> None:
    vll = order(isp, alice).vll
    until(replayed)
    pause_replay(True)
    api = client(alice)
    written = api.patch(
        f"/api/v1/vlls/{vll.pk}", {"description": "new"}, format="json", headers={"If-Match": "*"}
    )
    assert written.status_code == 200, written.content
    listed = api.get("/api/v1/vlls")
    assert listed.json()["results"][0]["description"] == "new"
    assert replica.AS_OF not in listed
    pause_replay(False)
    until(replayed)
    assert replica.AS_OF in api.get("/api/v1/vlls")


def test_outdated_or_absent_replica_is_not_used(isp: Isp, alice: User, standby: Child, settings: Any) -> None:
    vll = order(isp, alice).vll
    until(replayed)
    api = client(alice)
    assert replica.AS_OF in api.get("/api/v1/vlls")
    settings.LONGLINE_REPLICA_MAX_AGE_S = 0
    assert replica.AS_OF not in api.get("/api/v1/vlls")
    settings.LONGLINE_REPLICA_MAX_AGE_S = 3600
    assert replica.AS_OF in api.get("/api/v1/vlls")
    standby.end()
    for path in ("vlls", "orders", f"vlls/{vll.pk}/throughput"):
        response = api.get(f"/api/v1/{path}")
        assert response.status_code == 200
        assert replica.AS_OF not in response
    assert str(vll.pk) in b"".join(api.get("/api/v1/vlls.csv").streaming_content).decode()


def test_replica_refuses_writes_and_queries_of_permissions(isp: Isp, alice: User, standby: Child) -> None:
    order(isp, alice)
    until(replayed)

    class Request:
        method, user = "GET", alice

    def writes() -> int:
        return Vll.objects.update(description="")

    with pytest.raises(Exception, match="read-only transaction"):
        replica.from_replica(Request(), writes)
    with pytest.raises(RuntimeError, match="read from the primary"):
        replica.from_replica(Request(), lambda: list(Vll.objects.visible_to(alice)))
    # Afterwards everything is as before.
    assert not replica.is_read_now()
    assert Vll.objects.update(description="x") == 1


def test_rows_of_a_compiled_query_belong_to_the_default_database(standby: Child, isp: Isp) -> None:
    until(replayed)
    ports = CompiledQuery[Port](
        lambda ids: Port.objects.select_related("router").filter(is_one_of("pk", ids, BigIntegerField()))
    )
    with replica._replica_connection():
        assert connection.alias == replica.ALIAS
        read = ports([next(iter(isp.ports.values())).pk])[0]
    # Otherwise, Django would refuse to assign the row to a row of the primary.
    assert read._state.db == read.router._state.db == DEFAULT_DB_ALIAS
