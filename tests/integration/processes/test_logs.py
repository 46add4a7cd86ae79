"""The log is JSON, a request's lines bear its id, and no secret of an address gets into it."""

import io
import json
import logging
import logging.config
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import URLResolver, get_resolver

from portal.core.http import current_request_id, formatter


class Lines(list[dict[str, Any]]):
    """The log, decoded."""

    def named(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self if line["logger"] == name]


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The text that any logger wrote, at any level; it has to reach the root, where the one handler is."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter())
    root = logging.getLogger()
    before = root.level
    root.handlers.insert(0, handler)  # before pytest's, whose formatter adds to the record
    root.setLevel("DEBUG")
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


def lines(written: io.StringIO) -> Lines:
    return Lines(json.loads(line) for line in written.getvalue().splitlines())


def test_record_has_time_level_text_and_extra_fields(written: io.StringIO) -> None:
    logging.getLogger("longline.test").warning("rhino sent %d", 7, extra={"router": "rhino"})
    (line,) = lines(written)
    assert line.pop("time").endswith("Z")
    assert line == {"level": "WARNING", "logger": "longline.test", "msg": "rhino sent 7", "router": "rhino"}


def test_an_exception_is_one_line_with_its_trace(written: io.StringIO) -> None:
    try:
        raise ValueError("out of\nrange")
    except ValueError:
        logging.getLogger("longline.test").exception("failed")
    (line,) = lines(written)
    assert "ValueError: out of\nrange" in line["exception"]


def test_lines_of_a_request_bear_its_id(written: io.StringIO) -> None:
    token = current_request_id.set("of-this-request")
    try:
        logging.getLogger("longline.test").info("inside")
    finally:
        current_request_id.reset(token)
    assert lines(written)[0]["request_id"] == "of-this-request"


@pytest.mark.django_db
def test_a_request_is_one_line_under_the_id_of_its_answer(written: io.StringIO) -> None:
    answer = Client().get("/login/?next=secret-of-somebody", headers={"X-Request-Id": "0123456789"})
    (line,) = lines(written).named("longline.request")
    assert line["request_id"] == answer["X-Request-Id"] == "0123456789"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/login/", 200)
    assert line["duration_s"] > 0
    assert "secret-of-somebody" not in written.getvalue()


ADDRESSES = [
    ("/invitations/a-signed-secret/", "/invitations/…"),
    # An incomplete address, or one with extra characters, can be completed by a reader of the log.
    ("/invitations/a-signed-secret", "/invitations/…"),
    ("/invitations/a-signed-secret/x", "/invitations/…"),
    ("/password/new/1/a-signed-secret/", "/password/new/…"),
    ("/unsubscribe/a-signed-secret/", "/unsubscribe/…"),
]


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
@pytest.mark.parametrize(("path", "shown"), ADDRESSES)
def test_addresses_that_are_secrets_are_left_out(
    path: str, shown: str, method: str, written: io.StringIO
) -> None:
    Client().generic(method, path)
    (line,) = lines(written).named("longline.request")
    assert line["path"] == shown
    assert "a-signed-secret" not in written.getvalue()


@pytest.mark.django_db
def test_refused_request_is_logged_without_its_address_and_query(written: io.StringIO) -> None:
    """For 4xx, Django writes a separate record with the request."""
    Client(enforce_csrf_checks=True).post("/unsubscribe/a-signed-secret/?code=a-code-of-oidc")
    Client().get("/nowhere/?next=/invitations/a-signed-secret/&code=a-code-of-oidc")
    assert {line["logger"] for line in lines(written)} >= {"django.request", "longline.request"}
    assert "a-signed-secret" not in written.getvalue()
    assert "a-code-of-oidc" not in written.getvalue()


@pytest.mark.django_db
def test_crash_on_a_secret_address_is_logged_without_it(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(signed: str, *, now: datetime) -> None:
        raise RuntimeError(f"cannot read /invitations/{signed}/")

    monkeypatch.setattr("portal.accounts.invitations.invitation_of", crash)
    assert Client(raise_request_exception=False).get("/invitations/a-signed-secret/").status_code == 500
    (line,) = lines(written).named("django.request")
    assert line["level"] == "ERROR"
    assert "cannot read /invitations/…" in line["exception"]
    assert "a-signed-secret" not in written.getvalue()


@pytest.mark.parametrize("name", ["gunicorn.error", "celery.worker", "kombu", "asyncio", "anybody"])
def test_secret_address_is_removed_from_records_of_any_logger(name: str, written: io.StringIO) -> None:
    log = logging.getLogger(name)
    log.error("Error handling request %s", "/password/new/1/a-signed-secret/?code=a-code-of-oidc")
    log.error("failed", extra={"asked": {"of": ["https://portal.example/invitations/a-signed-secret/"]}})
    log.error("failed", extra={"why": ValueError("/unsubscribe/a-signed-secret/")})
    first, second, third = lines(written)
    assert first["msg"] == "Error handling request /password/new/…"
    assert second["asked"] == {"of": ["https://portal.example/invitations/…"]}
    assert third["why"] == "ValueError('/unsubscribe/…')"


def test_all_loggers_lead_to_the_one_handler() -> None:
    """Django's own handlers would print and mail what the portal leaves out."""
    logging.config.dictConfig(settings.LOGGING)
    for name in ("django", "django.request", "django.security.csrf", "django.server", "gunicorn.error"):
        log = logging.getLogger(name)
        while log.parent is not None:
            assert log.handlers == [], f"{log.name} writes by itself"
            assert log.propagate, f"{log.name} keeps its lines to itself"
            log = log.parent


def test_every_route_with_a_secret_is_named_as_a_secret_address() -> None:
    secrets = {"signed", "key", "uidb36", "token"}
    found = [
        route for route in _routes(get_resolver()) if secrets & set(re.findall(r"<(?:\w+:)?(\w+)>", route))
    ]
    assert found
    for route in found:
        assert f"/{route}".startswith(settings.SECRET_ADDRESSES), route


def _routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern, route)
        else:
            yield route


@pytest.mark.django_db
def test_probes_are_logged_only_when_they_fail(written: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    Client().get("/healthz")
    assert lines(written) == []
    monkeypatch.setattr("portal.processes.health_checks._migrations.state", lambda: "pending")
    Client().get("/readyz")
    assert lines(written).named("longline.request")[0]["status"] == 503
