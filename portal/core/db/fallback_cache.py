"""A Redis cache for rate limits. While Redis is unreachable, each process uses its own memory instead."""

import logging
import time
from collections.abc import Callable
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import ConnectionPool
from redis.exceptions import RedisError

from portal.core.redis_url import in_short, read_redis_url

logger = logging.getLogger(__name__)

# The time after a failure during which the cache does not use Redis. Otherwise each call would wait for the
# timeout of an unresponsive Redis.
PAUSE_S = 5.0


class _Client(RedisCacheClient):
    """A client of Redis. If the URL names Sentinels, it finds the master through them."""

    def __init__(self, servers: list[str], *, patience_s: float) -> None:
        super().__init__(servers)
        self._pool = read_redis_url(servers[0], variable="CACHE_URL").pool(patience_s=patience_s)

    def _get_connection_pool(self, write: bool) -> ConnectionPool:
        return self._pool


class FallbackRedisCache(RedisCache):
    """The cache for the limits on sign-ins and API calls.

    While Redis is unreachable, the limits apply per process. The limits are then weaker, but they still
    prevent unlimited guesses, and no user is locked out.
    """

    UNKNOWN = object()

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _Client
        self._instead = LocMemCache("instead-of-redis", {**params, "OPTIONS": {}})
        self._paused_until = 0.0

    def get_shared(self, key: str) -> Any:
        """Return the value in Redis, which all processes share; None if there is none.

        Return ``UNKNOWN`` while Redis is unreachable.
        """
        if time.monotonic() >= self._paused_until:
            try:
                return super().get(key)
            except RedisError as error:
                self._pause(error)
        return self.UNKNOWN

    def _either(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() >= self._paused_until:
            try:
                return getattr(super(), name)(*args, **kwargs)
            except RedisError as error:
                self._pause(error)
        return getattr(self._instead, name)(*args, **kwargs)

    def _pause(self, error: RedisError) -> None:
        self._paused_until = time.monotonic() + PAUSE_S
        logger.warning("Redis does not answer (%s); limits are kept per process", in_short(error))


def _forgiving(name: str) -> Callable[..., Any]:
    def call(self: FallbackRedisCache, *args: Any, **kwargs: Any) -> Any:
        return self._either(name, *args, **kwargs)

    call.__name__ = name
    return call


for _name in (
    "add",
    "get",
    "set",
    "touch",
    "delete",
    "get_many",
    "has_key",
    "incr",
    "set_many",
    "delete_many",
    "clear",
):
    setattr(FallbackRedisCache, _name, _forgiving(_name))
