"""The listener for committed changes in PostgreSQL. It detects if notifications no longer arrive.

Every few seconds it sends a notification to itself. If this notification does not arrive, the listener
reports that it hears nothing. The cause is a broken connection, or a pooler that gives each transaction a
different session.
"""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any
from uuid import uuid4

import psycopg

from portal.core.db.sessions import direct_parameters
from portal.live.topics import CHANNEL, keys_of
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
        # The channel also carries the heartbeats of other live processes, so this process needs a unique
        # text.
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
