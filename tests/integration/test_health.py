"""Alive, and able to work: what load balancers and container engines ask."""

from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from portal.processes import health_checks

pytestmark = pytest.mark.django_db


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(health_checks, "_broker", health_checks._Broker())
    monkeypatch.setattr(health_checks, "_migrations", health_checks._Migrations())
    return Client()


def test_a_process_that_answers_is_alive_whatever_is_away(
    stranger: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "cursor", _away)
    answer = stranger.get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok\n")


def test_it_is_ready_with_a_database_and_its_tables(stranger: Client) -> None:
    answer = stranger.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"ready": True, "database": "ok", "migrations": "applied", "broker": "ok"}


def test_it_is_not_ready_before_its_migrations_ran(stranger: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE id ="
            " (SELECT max(id) FROM django_migrations WHERE app = 'vll')"
        )
    answer = stranger.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["migrations"] == "pending"


def test_it_is_not_ready_without_its_database(stranger: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "cursor", _away)
    answer = stranger.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "ready": False,
        "database": "unreachable",
        "migrations": "unknown",
        "broker": "ok",
    }


def test_it_is_ready_without_redis_because_orders_are(
    stranger: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CELERY_BROKER_URL", "redis://127.0.0.1:1/0")
    answer = stranger.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["broker"] == "unreachable"


def test_strangers_make_it_ask_redis_no_more_often_than_every_five_seconds(
    stranger: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stranger.get("/readyz").json()["broker"] == "ok"
    monkeypatch.setattr(settings, "CELERY_BROKER_URL", "redis://127.0.0.1:1/0")
    assert stranger.get("/readyz").json()["broker"] == "ok"


def _away(*_: Any, **__: Any) -> Any:
    from django.db import OperationalError

    raise OperationalError("connection refused")
