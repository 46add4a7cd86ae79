"""Celery's beat with a lock in Redis. Any number of beat processes may run, but only one sends tasks.

The lock expires after some seconds unless its holder renews it. If the holder, its machine or its connection
to Redis fails, another process soon takes over. If Redis loses the lock, after a failover or a flush, two
processes may send tasks until the next renewal. Every task that beat sends may therefore run twice (ADR 50).
"""

import logging
from time import monotonic
from typing import Any

import redis
from celery.beat import PersistentScheduler
from redis.exceptions import LockNotOwnedError
from redis.lock import Lock

from portal.core.background_work import beat
from portal.core.redis_servers import broker_pool, in_short

log = logging.getLogger(__name__)

NAME = "longline:beat"
LASTS_S = 10.0
RENEWED_EVERY_S = 2
_PATIENCE_S = 2.0


class Turn:
    """The right to send tasks. The holder must call ``is_ours`` every few seconds."""

    def __init__(
        self, client: redis.Redis, *, lasts_s: float = LASTS_S, renewed_every_s: float = RENEWED_EVERY_S
    ):
        self._lock = Lock(client, NAME, timeout=lasts_s, thread_local=False)
        self._renewed_every_s = renewed_every_s
        self._ours = False
        self._renew_at = 0.0

    def is_ours(self) -> bool:
        """Return whether this process has the lock. If necessary, first take or renew the lock.

        Raises redis.RedisError. After an error, the caller must assume that it does not have the lock.
        """
        if self._ours and monotonic() < self._renew_at:
            return True
        renewing, self._ours = self._ours, False
        self._ours = (renewing and self._renew()) or self._lock.acquire(blocking=False)
        self._renew_at = monotonic() + self._renewed_every_s
        return self._ours

    def give_up(self) -> None:
        """Release the lock, so that another process can take over immediately. Raises redis.RedisError."""
        if self._ours:
            self._ours = False
            self._lock.release()

    def _renew(self) -> bool:
        try:
            return self._lock.reacquire()
        except LockNotOwnedError:
            return False


class SingleBeat(PersistentScheduler):
    """A scheduler that sends due tasks while it has the lock. Otherwise it waits for the lock."""

    max_interval = int(RENEWED_EVERY_S)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = Turn(redis.Redis(connection_pool=broker_pool(patience_s=_PATIENCE_S)))
        self._logged = ""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send due tasks if this process has the lock. Return the seconds until the next call."""
        try:
            ours = self._turn.is_ours()
        except redis.RedisError as error:
            self._log_once(f"Redis does not answer: {in_short(error)}")
            return RENEWED_EVERY_S
        if ours:
            self._log_once("this one works")
            return float(super().tick(*args, **kwargs))
        self._log_once("another one works, and this one waits")
        # By sending tasks, a process shows that it is alive (portal.celery). A waiting process must call
        # ``beat`` for this.
        beat()
        return RENEWED_EVERY_S

    def close(self) -> None:
        """Release the lock when the process ends."""
        try:
            self._turn.give_up()
        except redis.RedisError as error:
            log.warning("beat: the next process must wait for %g s: %s", LASTS_S, in_short(error))
        super().close()

    def _log_once(self, message: str) -> None:
        if message != self._logged:
            self._logged = message
            log.info("beat: %s", message)
