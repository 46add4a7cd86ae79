"""Server-sent events for open pages (HTML Living Standard, section 9.2), as an ASGI application.

A view of the portal (portal.web.page.live) decides who may follow a topic. The view runs with the
portal's middleware, in a thread of a small pool. For each stream, the view runs again once a minute, to end
the streams of users who have signed out. The streams themselves need no threads. An event contains only the
name of a topic.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.base import BaseHandler
from django.db import close_old_connections
from django.http import HttpResponse, HttpResponseBase

from portal.core.quantities import whole_number
from portal.metrics import live_stream_counts as metrics
from portal.processes.live_streams import REMEMBERED_S, Full, Stream, Streams, listen
from portal.web.page.live import Following

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

# Seconds between heartbeats. A page that receives nothing for more than two intervals begins to poll. Pages
# therefore work even behind a proxy that buffers all events.
BEAT_S = 15.0
# The minimum number of seconds between two events to one page, so that the page does not reload too often.
GAP_S = 0.5
# A page that does not accept an event for this number of seconds was closed, or should poll instead.
SLOW_READER_S = 10.0
# The seconds between two checks of the permissions of each stream's reader.
CHECKED_EVERY_S = 60.0
RETRY_AFTER_S = 60
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # With this header, nginx does not buffer the stream.
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class LiveEvents:
    """The application. It belongs to one event loop."""

    def __init__(self) -> None:
        self._streams = Streams(
            most=settings.LONGLINE_LIVE_PAGES, most_each=settings.LONGLINE_LIVE_PAGES_EACH
        )
        self._path = urlsplit(settings.LONGLINE_LIVE_URL).path or "/live/"
        self._view = BaseHandler()
        self._view.load_middleware()
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="live-check")
        self._hearing = False
        # The request that opened each open stream.
        self._requests: dict[Stream, Scope] = {}
        self._background: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._respond(scope, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        metrics.open_streams.set(0)
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._background = [
                    asyncio.create_task(listen(self._streams.changed, self._on_hearing)),
                    asyncio.create_task(self._check_repeatedly()),
                ]
                await send({"type": "lifespan.startup.complete"})
            else:
                for task in self._background:
                    task.cancel()
                metrics.open_streams.set(0)
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _on_hearing(self, hearing: bool) -> None:
        self._hearing = hearing
        self._streams.end_all()

    async def _respond(self, scope: Scope, send: Send) -> None:
        if scope["path"] == "/healthz":
            await _text(send, 200 if self._hearing else 503, "ok" if self._hearing else "hears no changes")
        elif scope["path"] != self._path:
            await _text(send, 404, "Not here.")
        elif scope["method"] != "GET":
            await _text(send, 405, "GET, please.", (b"allow", b"GET"))
        elif not self._hearing:
            await self._refuse(send, 503, "No changes are heard at the moment; poll.")
        else:
            await self._admit(scope, send)

    async def _admit(self, scope: Scope, send: Send) -> None:
        found = await self._check_access(scope)
        if not isinstance(found, Following):
            # The view has redirected the reader to the sign-in or to the set-up of a second factor. A stream
            # cannot follow a redirect.
            status = 401 if 300 <= found.status_code < 400 else found.status_code
            await self._refuse(send, status, "This page cannot be followed.")
            return
        try:
            stream = self._streams.open(found.user_id, found.followed, age_s=_age_s(scope))
        except Full:
            await self._refuse(send, 503, "Too many pages are open; poll.")
            return
        self._requests[stream] = scope
        try:
            await self._stream(stream, send)
        except TimeoutError:
            log.info("live: a reader received nothing for %g s", SLOW_READER_S)
        finally:
            self._streams.close(stream)
            del self._requests[stream]

    async def _stream(self, stream: Stream, send: Send) -> None:
        """Send events until the stream ends or the page is closed. When a page is closed, this task is
        cancelled.
        """
        await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *_cors()]})
        text = _event("following")
        while not stream.ended:
            topics = stream.take()
            text += "".join(_event("changed", topic) for topic in topics)
            metrics.events.inc(len(topics))
            async with asyncio.timeout(SLOW_READER_S):
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            await asyncio.sleep(GAP_S)
            try:
                async with asyncio.timeout(BEAT_S):
                    await stream.wake.wait()
                text = ""
            except TimeoutError:
                text = _event("beat")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse(self, send: Send, status: int, reason: str) -> None:
        metrics.refusals.labels(status).inc()
        again = [(b"retry-after", str(RETRY_AFTER_S).encode())] if status == 503 else []
        await _text(send, status, reason, *again, *_cors())

    async def _check_repeatedly(self) -> None:
        """Check the readers of all streams again and again.

        One reader is checked at a time, so that a thread of the pool remains free for new streams.
        """
        while True:
            began = monotonic()
            for stream in self._streams:
                request = self._requests.get(stream)
                if request is None:
                    continue
                found = await self._check_access(request)
                if not isinstance(found, Following) or found.followed != stream.followed:
                    stream.end()
            await asyncio.sleep(max(1.0, CHECKED_EVERY_S - (monotonic() - began)))

    async def _check_access(self, request: Scope) -> HttpResponseBase:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._call_view, request)

    def _call_view(self, request: Scope) -> HttpResponseBase:
        """Call the view with a new request object, because Django caches the user in a request. This function
        runs in a thread.
        """
        close_old_connections()
        try:
            return self._view.get_response(ASGIRequest(request, BytesIO()))
        except UnicodeDecodeError:
            return HttpResponse(status=400)
        finally:
            close_old_connections()


async def _text(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    all_headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode(), "more_body": False})


def _event(name: str, data: str = "") -> str:
    """Return an event of the stream. It always has data: browsers ignore events without data."""
    return f"event: {name}\ndata: {data}\n\n"


def _age_s(scope: Scope) -> float:
    """Return the age in seconds of the content that the page shows, according to the page.

    If the page sent no number, its content counts as too old.
    """
    given = parse_qs(scope["query_string"].decode("latin-1")).get("age_ms", [""])[-1]
    age_ms = whole_number(given, most=10**8 - 1)
    return REMEMBERED_S if age_ms is None else age_ms / 1000


def _cors() -> list[tuple[bytes, bytes]]:
    """Return CORS headers, which let the portal's pages read responses of a separate origin."""
    if not urlsplit(settings.LONGLINE_LIVE_URL).netloc:
        return []
    portal = urlsplit(settings.BASE_URL)
    origin = f"{portal.scheme}://{portal.netloc}".encode()
    return [(b"access-control-allow-origin", origin), (b"access-control-allow-credentials", b"true")]
