"""The log is JSON, a request's lines bear its id, and no secret of an address gets into it."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from portal.core.json_log import formatter
from portal.core.request_id import current_request_id


class Lines(list[dict[str, Any]]):
    """What was logged, decoded."""

    def named(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self if line["logger"] == name]


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter())
    log = logging.getLogger("longline")
    before = log.level
    log.addHandler(handler)
    log.setLevel("INFO")
    yield stream
    log.removeHandler(handler)
    log.setLevel(before)


def lines(written: io.StringIO) -> Lines:
    return Lines(json.loads(line) for line in written.getvalue().splitlines())


def test_a_line_has_time_level_and_text_and_what_was_given_besides(written: io.StringIO) -> None:
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


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/invitations/a-signed-secret/", "/invitations/<str:signed>/"),
        ("/password/new/1/a-signed-secret/", "/password/new/<str:uidb36>/<str:key>/"),
    ],
)
def test_addresses_that_are_secrets_are_left_out(path: str, route: str, written: io.StringIO) -> None:
    Client().get(path)
    (line,) = lines(written).named("longline.request")
    assert line["path"] == route
    assert "a-signed-secret" not in written.getvalue()


@pytest.mark.django_db
def test_probes_are_logged_only_when_they_fail(written: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    Client().get("/healthz")
    assert lines(written) == []
    monkeypatch.setattr("portal.health._migrations.state", lambda: "pending")
    Client().get("/readyz")
    assert lines(written).named("longline.request")[0]["status"] == 503
