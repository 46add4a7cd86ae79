"""A thousand open pages with one event stream each: their cost, and the delay from a commit to its event."""

import asyncio
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar
from uuid import UUID

import httpx
import psycopg

from bench.database import migrated
from bench.figures import Figure, percentile
from bench.sizes import sized
from bench.vlls import installation_fill
from devstack.folders import ROOT, VENV_BIN
from devstack.process import LOOPBACK, Child, Family, accepts, free_ports

PAGES, PEOPLE = sized(1_000, smallest=20), sized(100, smallest=4)
ROUNDS, ONE_BY_ONE = sized(15, smallest=2), sized(40, smallest=2)
# This pause is longer than the minimum time between two events that the live process sends to one page.
APART_S = 0.7
GIVE_UP_S = 120
_ONE_LINE = "UPDATE vll_vll SET description = 'changed at ' || clock_timestamp() WHERE id = %s"
# The statement changes a port of a customer. All readers of the pages belong to this customer.
_ALL_PAGES = "UPDATE inventory_port SET description = 'changed at ' || clock_timestamp() WHERE id = %s"
_PORT = 100

Sample = TypeVar("Sample")


def measure() -> Iterator[Figure]:
    with (
        migrated() as private,
        tempfile.TemporaryDirectory(prefix="longline-bench-live-") as name,
        psycopg.connect(private.database_url, autocommit=True) as database,
        Family() as family,
    ):
        installation_fill()
        web_port, live_port = free_ports(2)
        web = family.start(_server("web", web_port, Path(name), "--workers", "2"))
        live = family.start(_server("live", live_port, Path(name)))
        web.wait_until(lambda: accepts(web_port))
        live.wait_until(lambda: _hears(live_port), timeout_s=GIVE_UP_S)
        for _ in range(20):  # a web process starts its threads only when requests arrive
            httpx.get(f"http://{LOOPBACK}:{web_port}/healthz", trust_env=False)
        rss_before, threads_before = _rss_mb(live), _threads(web)
        pages = _Pages(database, live_port, _lines(), _cookies())

        def sample() -> tuple[float, int, int]:
            return _rss_mb(live), _threads(web), _threads(live)

        rss, web_threads, live_threads = asyncio.run(pages.measure(sample))
    each_kb = (rss - rss_before) * 1_024 / PAGES
    note = f"of the live process, {each_kb:.0f} kB a page; {rss_before:.0f} MB without any; {PEOPLE} people"
    yield Figure(f"sse_{PAGES}_pages_rss_mb", rss, "MB", note)
    note = f"more of all web processes than without them; the live process has {live_threads} in all"
    yield Figure(f"sse_{PAGES}_pages_web_threads", web_threads - threads_before, "threads", note)
    note = "from none open to all, each let in by the portal's own check"
    yield Figure(f"sse_{PAGES}_pages_open_s", pages.opened_s, "s", note)
    note = f"from the commit to the event, at the one page of {PAGES} that is about it; {ONE_BY_ONE} commits"
    for percent in (50, 95):
        yield Figure(f"sse_{PAGES}_pages_one_p{percent}_ms", percentile(pages.one, percent), "ms", note)
    note = f"from a commit that all pages are about to the event at each; medians of {ROUNDS} rounds"
    for percent in (50, 95):
        value = median(percentile(taken, percent) for taken in pages.all)
        yield Figure(f"sse_{PAGES}_pages_all_p{percent}_ms", value, "ms", note)


@dataclass
class _Pages:
    """The event streams of all pages. One event loop reads them.

    Each stream follows one line, and the ports of its reader.
    """

    # The connection is in autocommit mode: each statement is a transaction.
    database: psycopg.Connection
    port: int
    lines: list[UUID]
    cookies: list[str]
    opened_s: float = 0.0
    # The delays from a commit to its events, in milliseconds: for commits that concern one page, and for
    # commits that concern all pages.
    one: list[float] = field(default_factory=list)
    all: list[list[float]] = field(default_factory=list)
    _following: int = 0
    _received_at: list[float] = field(default_factory=list)

    async def measure(self, sample: Callable[[], Sample]) -> Sample:
        """Measure the streams. Return the result of ``sample``, which is called while all streams are open
        and idle.
        """
        began = time.perf_counter()
        tasks = [
            asyncio.create_task(self._page(self.cookies[number % PEOPLE], line))
            for number, line in enumerate(self.lines)
        ]
        await self._until(lambda: self._following == PAGES)
        self.opened_s = time.perf_counter() - began
        sample_taken = sample()
        for line in self.lines[:ONE_BY_ONE]:
            self.one += await self._latencies(_ONE_LINE, line, pages=1)
        for _ in range(ROUNDS):
            self.all.append(await self._latencies(_ALL_PAGES, _PORT, pages=PAGES))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return sample_taken

    async def _latencies(self, statement: str, about: UUID | int, *, pages: int) -> list[float]:
        await asyncio.sleep(APART_S)
        self._received_at.clear()
        self.database.execute(statement, [about])
        committed = time.perf_counter()
        await self._until(lambda: len(self._received_at) >= pages)
        assert len(self._received_at) == pages, (
            f"{len(self._received_at)} pages received the event, not {pages}"
        )
        return [(at - committed) * 1_000 for at in self._received_at]

    async def _page(self, cookie: str, line: UUID) -> None:
        reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
        path = f"/live/?about=line:{line}&about=ports&age_ms=0"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n\r\n".encode())
        try:
            async for sent in reader:
                if sent == b"event: following\n":
                    self._following += 1
                elif sent == b"event: changed\n":
                    self._received_at.append(time.perf_counter())
        finally:
            writer.close()

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(GIVE_UP_S):
            while not condition():
                await asyncio.sleep(0.002)


def _lines() -> list[UUID]:
    from portal.vll.models import Vll

    return list(Vll.objects.filter(customer_id=1).order_by("pk").values_list("pk", flat=True)[:PAGES])


def _cookies() -> list[str]:
    """Return a session cookie for each person. All of them belong to the same customer."""
    from django.conf import settings
    from django.test import Client

    from portal.accounts.models import Membership, User

    cookies = []
    for number in range(PEOPLE):
        user = User.objects.create_user(f"reader-{number}")
        Membership.objects.create(user=user, customer_id=1, role="viewer")
        browser = Client()
        browser.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        cookies.append(f"{name}={browser.cookies[name].value}")
    return cookies


def _server(name: str, port: int, folder: Path, *arguments: str) -> Child:
    config = f"python:portal.processes.gunicorn_{name}"
    bind = f"{LOOPBACK}:{port}"
    return Child(
        name=name,
        argv=[
            str(VENV_BIN / "gunicorn"),
            *("--config", config, "--bind", bind, "--no-control-socket", *arguments),
        ],
        log=folder / f"{name}.log",
        env=os.environ | {"STATIC_ROOT": str(folder)},
        cwd=ROOT,
    )


def _hears(port: int) -> bool:
    try:
        return httpx.get(f"http://{LOOPBACK}:{port}/healthz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _rss_mb(server: Child) -> float:
    """Return the resident memory of the server's workers in MB. proc(5) has it in kB."""
    return sum(_status(pid, "VmRSS") for pid in _workers(server)) / 1_024


def _threads(server: Child) -> int:
    return sum(_status(pid, "Threads") for pid in _workers(server))


def _workers(server: Child) -> list[str]:
    pid = server.process.pid
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def _status(pid: str, name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])
