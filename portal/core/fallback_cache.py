"""A Redis cache that never locks users out: while Redis is unreachable, each process counts on its own."""

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

# How long the cache does not use Redis after a failure. Otherwise a hanging Redis would cost its timeout at
# every call.
PAUSE_S = 5.0


class _Client(RedisCacheClient):
    """A client that finds the master through Sentinels if the URL names some."""

    def __init__(self, servers: list[str], *, patience_s: float) -> None:
        super().__init__(servers)
        self._pool = read_redis_url(servers[0], variable="CACHE_URL").pool(patience_s=patience_s)

    def _get_connection_pool(self, write: bool) -> ConnectionPool:
        return self._pool


class FallbackRedisCache(RedisCache):
    """The cache of the limits on logins and API calls. Without Redis the limits apply per process. That is
    weaker, but nobody can guess without limit, and nobody is kept out.
    """

    UNKNOWN = object()

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _Client
        self._instead = LocMemCache("instead-of-redis", {**params, "OPTIONS": {}})
        self._paused_until = 0.0

    def get_shared(self, key: str) -> Any:
        """Return the value that any process has set; None if there is none, ``UNKNOWN`` while Redis is
        unreachable.
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
