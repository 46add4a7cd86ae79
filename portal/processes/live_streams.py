"""The open pages of one live process with the topics that they follow, and the listener for changed topics.

Everything is in memory and belongs to one event loop. A page that reads slowly needs little memory: the
process keeps only the names of changed topics, and sends one event per topic however often the topic changed.

Every few seconds, the listener sends a notification to itself through PostgreSQL. If this notification does
not arrive, the listener reports that it hears nothing. The cause is a broken connection, or a pooler that
gives each transaction a different session.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any
from uuid import uuid4

import psycopg

from portal.core.db.sessions import direct_parameters
from portal.live.topics import CHANNEL, Followed, keys_of
from portal.metrics import live_stream_counts as metrics

log = logging.getLogger(__name__)

BEAT_S = 15.0
# A notification that takes longer than this counts as lost.
PATIENCE_S = 5.0
# Seconds to connect. If the address has several hosts, each of them has its own part of this time
# (connect_timeout).
CONNECT_S = 15.0
AGAIN_S = 1.0
_BEAT = "beat:"


class NotificationsMissing(Exception):
    """PostgreSQL responds, but the listener's own notification does not arrive."""


async def listen(on_keys: Callable[[frozenset[str]], None], on_hearing: Callable[[bool], None]) -> None:
    """Call ``on_keys`` with the keys of each change, and ``on_hearing`` when reception begins or ends.

    Never returns: after an error, it connects again.
    """
    while True:
        try:
            async with asyncio.timeout(CONNECT_S):
                session = await psycopg.AsyncConnection.connect(**direct_parameters(), autocommit=True)
            async with session:
                await _Listener(session, on_keys, on_hearing).run()
        except (psycopg.Error, OSError, TimeoutError, NotificationsMissing) as error:
            on_hearing(False)
            metrics.hearing.set(0)
            log.warning("live: %s: %s; retry in %g s", type(error).__name__, error, AGAIN_S)
            await asyncio.sleep(AGAIN_S)


class _Listener:
    def __init__(
        self,
        session: psycopg.AsyncConnection[Any],
        on_keys: Callable[[frozenset[str]], None],
        on_hearing: Callable[[bool], None],
    ) -> None:
        self._session = session
        self._on_keys = on_keys
        self._on_hearing = on_hearing
        # The channel also carries the heartbeats of other live processes, so this text must be unique.
        self._beat = f"{_BEAT}{uuid4().hex}"
        self._sent_at = 0.0
        self._awaited = False
        self._hearing = False

    async def run(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._session.execute(f"LISTEN {CHANNEL}")
        while True:
            async with asyncio.timeout(PATIENCE_S):
                self._sent_at, self._awaited = monotonic(), True
                await self._session.execute("SELECT pg_notify(%s, %s)", [CHANNEL, self._beat])
            await self._receive_for(PATIENCE_S)
            if self._awaited:
                raise NotificationsMissing("no notification came back")
            await self._receive_for(BEAT_S - PATIENCE_S)

    async def _receive_for(self, seconds: float) -> None:
        async for notification in self._session.notifies(timeout=seconds):
            if notification.payload == self._beat:
                self._beat_came_back()
            else:
                self._on_keys(keys_of(notification.payload))

    def _beat_came_back(self) -> None:
        metrics.lag.observe(monotonic() - self._sent_at)
        self._awaited = False
        if not self._hearing:
            self._hearing = True
            metrics.hearing.set(1)
            self._on_hearing(True)


# Seconds for which changes are remembered. A page whose content is older must reload everything.
REMEMBERED_S = 120.0


class Full(Exception):
    """The limit of streams is reached, either in total or for this user."""


class Stream:
    """The stream of one page. ``wake`` is set when topics must be sent or the stream must end."""

    __slots__ = ("_topics", "_waiting", "ended", "followed", "user_id", "wake")

    def __init__(self, user_id: int, followed: Followed) -> None:
        self.user_id = user_id
        self.followed = followed
        self.ended = False
        self.wake = asyncio.Event()
        self._waiting: set[str] = set()
        self._topics: dict[str, list[str]] = {}
        for topic, keys in followed.items():
            for key in keys:
                self._topics.setdefault(key, []).append(topic)

    @property
    def keys(self) -> Iterable[str]:
        return self._topics.keys()

    def changed(self, key: str) -> None:
        self._waiting.update(self._topics[key])
        self.wake.set()

    def end(self) -> None:
        self.ended = True
        self.wake.set()

    def take(self) -> list[str]:
        """Return the changed topics that were not sent yet, and mark them as sent."""
        taken = sorted(self._waiting)
        self._waiting.clear()
        self.wake.clear()
        return taken


class Streams:
    """All streams of the process, and an index of the streams by the keys that they follow."""

    def __init__(self, *, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._by_key: defaultdict[str, set[Stream]] = defaultdict(set)
        self._of_user: defaultdict[int, int] = defaultdict(int)
        self._all: set[Stream] = set()
        # The time of the last change by key, oldest first. Changes before `_known_since` are not included.
        self._changed_at: dict[str, float] = {}
        self._known_since = monotonic()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Stream]:
        """Iterate over a copy, because streams may be opened and closed during the iteration."""
        return iter(list(self._all))

    def open(self, user_id: int, followed: Followed, *, age_s: float) -> Stream:
        """Open a stream for a page whose content is ``age_s`` seconds old.

        Topics that have changed since that time are to be sent immediately. Raises Full.
        """
        if len(self._all) >= self._most or self._of_user[user_id] >= self._most_each:
            raise Full
        stream = Stream(user_id, followed)
        self._all.add(stream)
        self._of_user[user_id] += 1
        shown_at = monotonic() - age_s
        for key in stream.keys:
            self._by_key[key].add(stream)
            if shown_at < self._known_since or self._changed_at.get(key, 0.0) > shown_at:
                stream.changed(key)
        metrics.open_streams.set(len(self._all))
        return stream

    def close(self, stream: Stream) -> None:
        self._all.discard(stream)
        for key in stream.keys:
            self._by_key[key].discard(stream)
            if not self._by_key[key]:
                del self._by_key[key]
        self._of_user[stream.user_id] -= 1
        if not self._of_user[stream.user_id]:
            del self._of_user[stream.user_id]
        metrics.open_streams.set(len(self._all))

    def changed(self, keys: Iterable[str]) -> None:
        """Record that a change with these keys was committed."""
        now = monotonic()
        for key in keys:
            # Remove the key first, so that the dictionary stays sorted by time.
            self._changed_at.pop(key, None)
            self._changed_at[key] = now
            for stream in self._by_key.get(key, ()):
                stream.changed(key)
        self._forget(now - REMEMBERED_S)

    def end_all(self) -> None:
        """End all streams, because changes may have been missed. Pages connect again and reload."""
        for stream in self._all:
            stream.end()
        self._changed_at.clear()
        self._known_since = monotonic()

    def _forget(self, before: float) -> None:
        while self._changed_at:
            key, at = next(iter(self._changed_at.items()))
            if at >= before:
                break
            del self._changed_at[key]
        self._known_since = max(self._known_since, before)
