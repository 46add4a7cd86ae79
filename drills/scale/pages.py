"""Open pages, which behave as in browsers (static/js/live.js): each has one stream, and reloads its parts."""

import asyncio
import html
import json
import re
import time
from dataclasses import dataclass, field
from urllib.parse import urlencode

from devstack.process import LOOPBACK
from drills.scale.lag import Lags
from drills.scale.web import request

# As in live.js: the time without an event after which a part is reloaded, and the longest pause before a
# broken stream is opened again.
_RELOAD_AFTER_S = 30.0
_DROPPED_S = 2.0
_PART = re.compile(r"<\w+\s[^>]*\bdata-live=\"[^>]*>")
_ATTRIBUTE = re.compile(r"([\w-]+)=(?:\"([^\"]*)\"|'([^']*)')")
_TURN = re.compile(r"unless=(op-\w+)")


@dataclass
class Requests:
    """The requests that pages send: the durations (ms) by the reason of the request, and the failures."""

    took: dict[str, list[float]] = field(default_factory=lambda: {"page": [], "part": []})
    failed: list[str] = field(default_factory=list)
    events: int = 0
    dropped: int = 0


@dataclass
class Page:
    """One person's open page. ``line`` is the line that the page shows, or "" for another page."""

    path: str
    cookie: str
    web_port: int
    live_port: int
    requests: Requests
    lags: Lags
    line: str = ""
    # For each part of the page, its attributes, keyed by the id of the part.
    _parts: dict[str, dict[str, str]] = field(default_factory=dict)
    _loaded_at: dict[str, float] = field(default_factory=dict)
    _on_its_way: set[str] = field(default_factory=set)
    _stale: set[str] = field(default_factory=set)

    async def stay_open(self) -> None:
        await self._get("page", self.path, {})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reload_idle())
            while True:
                try:
                    await self._follow(tasks)
                except (OSError, asyncio.IncompleteReadError):
                    pass
                self.requests.dropped += 1
                await asyncio.sleep(_DROPPED_S)

    async def _follow(self, tasks: asyncio.TaskGroup) -> None:
        topics = sorted({topic for part in self._parts.values() for topic in part["data-live"].split()})
        reader, writer = await asyncio.open_connection(LOOPBACK, self.live_port)
        try:
            query = urlencode([*(("about", topic) for topic in topics), ("age_ms", 1000)])
            writer.write(
                f"GET /live/?{query} HTTP/1.1\r\nHost: localhost\r\nCookie: {self.cookie}\r\n\r\n".encode()
            )
            event = b""
            async for sent in reader:
                if sent.startswith(b"event: "):
                    event = sent[7:].strip()
                elif sent.startswith(b"data: ") and event == b"changed":
                    self.requests.events += 1
                    topic = sent[6:].strip().decode()
                    if self.line:
                        self.lags.notified(self.line)
                    for part_id, part in list(self._parts.items()):
                        if topic in part["data-live"].split():
                            tasks.create_task(self._reload(part_id))
        finally:
            writer.close()

    async def _reload_idle(self) -> None:
        while True:
            await asyncio.sleep(1)
            for part_id in list(self._parts):
                if time.monotonic() - self._loaded_at[part_id] > _RELOAD_AFTER_S:
                    await self._reload(part_id)

    async def _reload(self, part_id: str) -> None:
        if part_id in self._on_its_way:
            self._stale.add(part_id)
            return
        self._on_its_way.add(part_id)
        try:
            part = self._parts[part_id]
            headers = {"HX-Request": "true", "HX-Target": part_id, "X-Whole": "1"}
            headers |= json.loads(part.get("hx-headers", "{}"))
            await self._get("part", part["hx-get"], headers)
        finally:
            self._on_its_way.discard(part_id)
        if part_id in self._stale:
            self._stale.discard(part_id)
            await self._reload(part_id)

    async def _get(self, kind: str, path: str, headers: dict[str, str]) -> None:
        began = time.monotonic()
        status, body = await request(self.web_port, path, headers={"Cookie": self.cookie, **headers})
        self.requests.took[kind].append((time.monotonic() - began) * 1000)
        if status not in (200, 204):
            self.requests.failed.append(f"{path} {status} {body[:200]!r}")
        if status == 200:
            self._show(body.decode())
        for part_id in self._parts:
            if kind == "page" or self._parts[part_id]["hx-get"] == path:
                self._loaded_at[part_id] = began

    def _show(self, text: str) -> None:
        for tag in _PART.findall(text):
            found = {name: html.unescape(one or other) for name, one, other in _ATTRIBUTE.findall(tag)}
            if "id" in found and "hx-get" in found:
                self._parts[found["id"]] = found
                self._loaded_at.setdefault(found["id"], time.monotonic())
                if self.line and (turn := _TURN.search(found["hx-get"])):
                    self.lags.shown(self.line, up=turn[1] == "op-up")
