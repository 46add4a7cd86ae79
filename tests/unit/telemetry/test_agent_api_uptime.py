"""The uptime of an agent API process: an overloaded process does not claim that it receives reports."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest

from portal.telemetry import router_silences
from portal.telemetry.router_silences import answering, is_one_free


@pytest.fixture(autouse=True)
def short_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_silences, "_BEAT", timedelta(seconds=0.2))


def test_one_free_thread_is_enough() -> None:
    with ExitStack() as requests:
        for _ in range(7):
            requests.enter_context(answering())
        assert is_one_free(8)
        requests.enter_context(answering())
        assert not is_one_free(8)
    assert is_one_free(8)


def test_a_thread_that_is_free_for_a_moment_is_enough() -> None:
    with answering(), ExitStack() as second:
        second.enter_context(answering())
        threading.Timer(0.1, second.close).start()
        assert is_one_free(2)


def test_each_request_counts_until_its_response(monkeypatch: pytest.MonkeyPatch) -> None:
    # The import sets other settings, for a separate process.
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", os.environ["DJANGO_SETTINGS_MODULE"])
    wsgi_agent_api = import_module("portal.processes.wsgi_agent_api")
    free: list[bool] = []

    def views(*_: Any) -> Iterator[bytes]:
        free.append(is_one_free(1))
        raise RuntimeError

    monkeypatch.setattr(wsgi_agent_api, "_views", views)
    with pytest.raises(RuntimeError):
        wsgi_agent_api.application({}, lambda *_: None)
    assert free == [False]
    assert is_one_free(1)
