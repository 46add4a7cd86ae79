"""After a failover: a connection that leads to a standby is no connection.

A session that is set to read only answers as a standby does, with SQLSTATE 25006.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, close_old_connections, connection, transaction
from django.test import Client

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import body, client
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def standby(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Call it, and the connection, which is kept, leads to one."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 60)
    connection.close()

    def begin() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")

    yield begin
    connection.close()


def session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_kept_connection_to_one_is_replaced_before_it_is_used(standby: Any) -> None:
    standby()
    before = session()
    close_old_connections()
    assert session() != before
    Customer.objects.create(name="Alpine Dairy", created_at=clock.now())


def test_one_that_shall_only_read_is_kept(standby: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options = connection.settings_dict["OPTIONS"] | {"target_session_attrs": "any"}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    standby()
    before = session()
    close_old_connections()
    assert session() == before


@pytest.mark.parametrize("in_a_transaction", [False, True])
def test_a_write_that_is_refused_is_an_outage_and_ends_the_connection(
    standby: Any, in_a_transaction: bool
) -> None:
    standby()
    before = session()
    with pytest.raises(OperationalError, match="read-only transaction"):
        if in_a_transaction:
            with transaction.atomic():
                Customer.objects.create(name="Alpine Dairy", created_at=clock.now())
        else:
            Customer.objects.create(name="Alpine Dairy", created_at=clock.now())
    close_old_connections()
    assert session() != before
    assert not Customer.objects.exists()


def test_an_order_is_answered_503_and_accepted_when_it_is_sent_again(
    isp: Isp, alice: User, standby: Any
) -> None:
    api = client(alice)
    api.raise_request_exception = False
    standby()
    answer = api.post("/api/v1/vlls", body(isp), format="json", headers={"Idempotency-Key": "k-1"})
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert not Vll.objects.exists()
    close_old_connections()
    again = api.post("/api/v1/vlls", body(isp), format="json", headers={"Idempotency-Key": "k-1"})
    assert again.status_code == 202


def test_a_form_is_answered_503(isp: Isp, nora: User, standby: Any) -> None:
    browser = signed_in(nora)
    browser.raise_request_exception = False
    standby()
    answer = browser.post("/noc/sites/add/", {"name": "Zurich"})
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


def test_a_process_that_reaches_nothing_else_is_not_ready(standby: Any) -> None:
    standby()
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "read-only")
