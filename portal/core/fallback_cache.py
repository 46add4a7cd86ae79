"""A Redis cache that nobody is locked out by: while Redis is away, each process counts for itself."""

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

# How long Redis is left alone after it failed: a frozen one must not cost its timeout at every call.
REST_S = 5.0


class _Client(RedisCacheClient):
    """Finds the master by Sentinels, where the address names some."""

    def __init__(self, servers: list[str], *, patience_s: float) -> None:
        super().__init__(servers)
        self._pool = read_redis_url(servers[0], variable="CACHE_URL").pool(patience_s=patience_s)

    def _get_connection_pool(self, write: bool) -> ConnectionPool:
        return self._pool


class FallbackRedisCache(RedisCache):
    """Limits of logins and API calls live here. Without Redis they hold per process, which is weaker but
    neither lets everybody guess without limit nor keeps everybody out."""

    UNKNOWN = object()

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _Client
        self._instead = LocMemCache("instead-of-redis", {**params, "OPTIONS": {}})
        self._resting_until = 0.0

    def get_shared(self, key: str) -> Any:
        """What any process has set, None for nothing; ``UNKNOWN`` while Redis is away."""
        if time.monotonic() >= self._resting_until:
            try:
                return super().get(key)
            except RedisError as error:
                self._rest(error)
        return self.UNKNOWN

    def _either(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() >= self._resting_until:
            try:
                return getattr(super(), name)(*args, **kwargs)
            except RedisError as error:
                self._rest(error)
        return getattr(self._instead, name)(*args, **kwargs)

    def _rest(self, error: RedisError) -> None:
        self._resting_until = time.monotonic() + REST_S
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
