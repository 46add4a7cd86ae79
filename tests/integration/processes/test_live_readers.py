"""A stream ends with its reader's session, and when changes are no longer heard."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test import Client

from portal.accounts.models import User
from portal.processes import live_events, live_streams
from portal.processes.live_events import LiveEvents
from portal.processes.settings_live import MIDDLEWARE
from tests.integration.live_process import cookie_of

pytestmark = pytest.mark.django_db(transaction=True)
GIVEN_UP_S = 20


@pytest.fixture(autouse=True)
def impatient(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MIDDLEWARE = MIDDLEWARE
    monkeypatch.setattr(live_events, "CHECKED_EVERY_S", 1.0)
    monkeypatch.setattr(live_events, "GAP_S", 0.0)


class Messages:
    """What an application says to one client."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(GIVEN_UP_S):
            return await self.said.get()

    async def status(self) -> int:
        message = await self.next()
        assert message["type"] == "http.response.start"
        return int(message["status"])

    async def ends(self) -> None:
        async with asyncio.timeout(GIVEN_UP_S):
            while (await self.said.get()).get("more_body", True):
                pass


@asynccontextmanager
async def running(live: LiveEvents) -> AsyncIterator[None]:
    """While its lifespan lasts, and it hears changes."""
    world = Messages()
    task = asyncio.create_task(live({"type": "lifespan"}, world.received.get, world.said.put))
    await world.received.put({"type": "lifespan.startup"})
    assert (await world.next())["type"] == "lifespan.startup.complete"
    try:
        async with asyncio.timeout(GIVEN_UP_S):
            while await health(live) != 200:
                await asyncio.sleep(0.02)
        yield
    finally:
        await world.received.put({"type": "lifespan.shutdown"})
        await task


async def ask(live: LiveEvents, path: str, cookie: str = "", query: str = "") -> Messages:
    page = Messages()
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost"), (b"cookie", cookie.encode())],
    }
    page_task = asyncio.create_task(live(scope, page.received.get, page.said.put))
    page.said.task = page_task  # type: ignore[attr-defined] - kept for as long as the page
    return page


async def health(live: LiveEvents) -> int:
    return await (await ask(live, "/healthz")).status()


def in_a_thread(do: Callable[[], Any]) -> None:
    """With a database connection that does not outlive it."""
    try:
        do()
    finally:
        connection.close()


def sign_out(browser: Client, user: User) -> None:
    browser.post("/logout/")


def close_account(browser: Client, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def leave(browser: Client, user: User) -> None:
    user.memberships.all().delete()


def change_password(browser: Client, user: User) -> None:
    user.set_password("another horse battery")
    user.save()


@pytest.mark.parametrize("ending", [sign_out, close_account, leave, change_password])
def test_a_stream_ends_with_the_right_to_it(alice: User, ending: Callable[[Client, User], None]) -> None:
    browser = Client()
    browser.force_login(alice)
    cookie = cookie_of(browser)

    async def scene() -> None:
        live = LiveEvents()
        async with running(live):
            page = await ask(live, "/live/", cookie, "about=lines&age_ms=0")
            assert await page.status() == 200
            await sync_to_async(in_a_thread)(lambda: ending(browser, alice))
            await page.ends()

    asyncio.run(scene())


def test_noc_staff_without_a_second_factor_follow_nothing(nora: User, settings: Any) -> None:
    settings.LONGLINE_NOC_NEEDS_TOTP = True
    cookie = cookie_of(nora)

    async def scene() -> int:
        live = LiveEvents()
        async with running(live):
            return await (await ask(live, "/live/", cookie, "about=network")).status()

    assert asyncio.run(scene()) == 401


def test_streams_end_when_changes_are_no_longer_heard_and_come_back(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_streams, "AGAIN_S", 2.0)
    cookie = cookie_of(alice)

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query ~ 'pg_notify' AND pid <> pg_backend_pid()"
            )
            assert cursor.rowcount == 1

    async def scene() -> None:
        live = LiveEvents()
        async with running(live):
            page = await ask(live, "/live/", cookie, "about=lines&age_ms=0")
            assert await page.status() == 200
            await sync_to_async(in_a_thread)(cut)
            await page.ends()
            assert await (await ask(live, "/live/", cookie, "about=lines")).status() == 503
            async with asyncio.timeout(GIVEN_UP_S):
                while await health(live) != 200:
                    await asyncio.sleep(0.02)
            # A page from before may have missed anything.
            page = await ask(live, "/live/", cookie, "about=lines&age_ms=5000")
            assert await page.status() == 200
            assert b"data: lines" in (await page.next())["body"]

    asyncio.run(scene())


def test_a_pooler_that_keeps_notifications_back_is_found_out(
    monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    """LISTEN is taken, and nothing ever arrives."""
    monkeypatch.setattr(live_streams, "PATIENCE_S", 0.3)
    monkeypatch.setattr(live_streams, "AGAIN_S", 0.05)
    monkeypatch.setattr(live_streams, "CHANNEL", "what_nobody_listens_to")
    heard: list[bool] = []

    async def scene() -> None:
        execute = live_streams.psycopg.AsyncConnection.execute

        async def deaf(self: Any, query: Any, *args: Any) -> Any:
            return None if "LISTEN" in query else await execute(self, query, *args)

        monkeypatch.setattr(live_streams.psycopg.AsyncConnection, "execute", deaf)
        task = asyncio.create_task(live_streams.listen(lambda keys: None, heard.append))
        async with asyncio.timeout(GIVEN_UP_S):
            while len(heard) < 2:
                await asyncio.sleep(0.02)
        task.cancel()

    asyncio.run(scene())
    assert not any(heard)
