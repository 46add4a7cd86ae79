"""Celery's beat, of which one works however many are started: whoever has the lock in Redis.

The lock lasts for seconds and is renewed while its holder works; so the next one takes over soon after the
holder, its machine or its way to Redis is gone. Should Redis lose the lock, in a failover or emptied, two may
send for as long as a renewal takes: whatever beat sends may be done twice (ADR 50).
"""

import logging
from time import monotonic
from typing import Any

import redis
from celery.beat import PersistentScheduler
from django.conf import settings
from redis.exceptions import LockNotOwnedError
from redis.lock import Lock

from portal.core.health_file import beat
from portal.core.redis_url import in_short, read_redis_url

log = logging.getLogger(__name__)

NAME = "longline:beat"
LASTS_S = 10.0
RENEWED_EVERY_S = 2
_PATIENCE_S = 2.0


class Turn:
    """The right to send, as long as ``is_ours`` says so every few seconds."""

    def __init__(
        self, client: redis.Redis, *, lasts_s: float = LASTS_S, renewed_every_s: float = RENEWED_EVERY_S
    ):
        self._lock = Lock(client, NAME, timeout=lasts_s, thread_local=False)
        self._renewed_every_s = renewed_every_s
        self._ours = False
        self._renew_at = 0.0

    def is_ours(self) -> bool:
        """Renewed or taken where that is due. Raises redis.RedisError: then nobody's, for all we know."""
        if self._ours and monotonic() < self._renew_at:
            return True
        renewing, self._ours = self._ours, False
        self._ours = (renewing and self._renew()) or self._lock.acquire(blocking=False)
        self._renew_at = monotonic() + self._renewed_every_s
        return self._ours

    def give_up(self) -> None:
        """The next one need not wait. Raises redis.RedisError."""
        if self._ours:
            self._ours = False
            self._lock.release()

    def _renew(self) -> bool:
        try:
            return self._lock.reacquire()
        except LockNotOwnedError:
            return False


class SingleBeat(PersistentScheduler):
    """Sends what is due while it is this one's turn, and otherwise waits for it."""

    max_interval = int(RENEWED_EVERY_S)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        address = read_redis_url(settings.REDIS_URL, variable="REDIS_URL")
        self._turn = Turn(redis.Redis(connection_pool=address.pool(patience_s=_PATIENCE_S)))
        self._said = ""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Seconds until it wants to be called again."""
        try:
            ours = self._turn.is_ours()
        except redis.RedisError as error:
            self._say(f"Redis does not answer: {in_short(error)}")
            return RENEWED_EVERY_S
        if ours:
            self._say("this one works")
            return float(super().tick(*args, **kwargs))
        self._say("another one works, and this one waits")
        # While it works, it lives when it sends (portal.celery).
        beat()
        return RENEWED_EVERY_S

    def close(self) -> None:
        """Called at the end."""
        try:
            self._turn.give_up()
        except redis.RedisError as error:
            log.warning("beat: the next one has to wait for %g s: %s", LASTS_S, in_short(error))
        super().close()

    def _say(self, what: str) -> None:
        if what != self._said:
            self._said = what
            log.info("beat: %s", what)
