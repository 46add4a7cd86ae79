"""The live process on the tests' database, and open pages that listen to it."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from urllib.parse import urlencode

import httpx
from django.conf import settings
from django.test import Client

from devstack.process import LOOPBACK, free_ports
from portal.accounts.models import User
from tests.integration.database_url import database_url
from tests.integration.web_pages.browser import session_of

GIVEN_UP_S = 30
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class Page:
    """An open page: ``status`` of the response, and the topics of the notifications that it receives."""

    def __init__(self, port: int, cookie: str, about: list[str], age_ms: int = 0) -> None:
        self._connection = http.client.HTTPConnection(LOOPBACK, port, timeout=GIVEN_UP_S)
        query = urlencode([*(("about", topic) for topic in about), ("age_ms", age_ms)])
        self._connection.request("GET", f"/live/?{query}", headers={"Cookie": cookie, "Host": "localhost"})
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = self._answer.headers

    def event(self) -> tuple[str, str]:
        """Return the next event and its data; ("", "") when the stream has ended."""
        name = self._line().removeprefix("event: ")
        data = self._line().removeprefix("data: ")
        self._line()
        return name, data

    def follows(self) -> "Page":
        """Return the page once the stream has begun."""
        assert self.event() == ("following", "")
        return self

    def topics(self, until: str) -> list[str]:
        """Return the topics that the page received up to this one; tests check that no other topic came."""
        found: list[str] = []
        while until not in found:
            name, data = self.event()
            assert name in ("changed", "beat"), f"the stream ended after {found}"
            found += [data] if name == "changed" else []
        return found

    def close(self) -> None:
        self._connection.close()
        self._answer.close()

    def _line(self) -> str:
        return self._answer.readline().decode().rstrip("\n")


class LiveProcess:
    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.port = port
        self.process = process
        self._pages: list[Page] = []

    def page(self, user: User | Client | None, *about: str, age_ms: int = 0) -> Page:
        """Open a page of this user with these topics."""
        page = Page(self.port, cookie_of(user), list(about), age_ms)
        self._pages.append(page)
        return page

    def hears(self) -> bool:
        try:
            return httpx.get(f"http://{LOOPBACK}:{self.port}/healthz", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def close(self) -> None:
        for page in self._pages:
            page.close()
        self.process.terminate()
        self.process.wait(GIVEN_UP_S)


def cookie_of(user: User | Client | None) -> str:
    if user is None:
        return ""
    name = settings.SESSION_COOKIE_NAME
    session = session_of(user) if isinstance(user, User) else user.cookies[name].value
    return f"{name}={session}"


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GIVEN_UP_S
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)


@contextmanager
def live_process(
    environment: Mapping[str, str] = NO_SETTINGS, port: int | None = None
) -> Iterator[LiveProcess]:
    """Start a live process that listens to the tests' database; the test has to use transactions."""
    port = port or free_ports(1)[0]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "--config", "python:portal.processes.gunicorn_live"),
            *("--bind", f"{LOOPBACK}:{port}", "--no-control-socket"),
        ],
        env=os.environ | {"DATABASE_URL": database_url()} | environment,
        cwd=settings.BASE_DIR,
    )
    live = LiveProcess(port, process)
    try:
        eventually(live.hears)
        yield live
    finally:
        live.close()
