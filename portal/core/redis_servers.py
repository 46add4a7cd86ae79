"""URLs of a Redis server, or of Sentinels that know the current master; and a cache in Redis.

``redis://``, ``rediss://`` and ``unix://`` are URLs of redis-py. A URL of Sentinels has the form
``sentinel://user:password@host:26379,other:26379/0?service=longline``. The password is the password of Redis,
and the service is the name in ``sentinel monitor``. If the Sentinels require a password, add
``sentinel_password`` (and ``sentinel_username``).
https://redis.io/docs/latest/develop/reference/sentinel-clients/
"""

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import redis
from django.conf import settings
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

# With these values, an idle connection to an unreachable server fails after 5 + 3 * 2 s.
KEEPALIVE = {socket.TCP_KEEPIDLE: 5, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
_PORT = 26379
_OPTIONS = frozenset({"service", "sentinel_username", "sentinel_password"})
_FORM = "sentinel://:password@host:26379,other:26379/0?service=name"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """A parsed URL. ``url``: the original URL. ``sentinels``: hosts and ports.

    Without Sentinels, only ``url`` is used.
    """

    url: str
    sentinels: tuple[tuple[str, int], ...] = ()
    service: str = ""
    database: int = 0
    username: str | None = None
    password: str | None = None
    sentinel_username: str | None = None
    sentinel_password: str | None = None

    def with_database(self, number: int) -> "RedisUrl":
        """Return the URL of another database of the same server."""
        address, mark, options = self.url.partition("?")
        scheme, _, rest = address.partition("://")
        server = rest.partition("/")[0]
        return replace(self, url=f"{scheme}://{server}/{number}{mark}{options}", database=number)

    @property
    def broker_url(self) -> str:
        """Return the URL in Celery's form, with one URL for each Sentinel."""
        if not self.sentinels:
            return self.url
        who = f"{quote(self.username or '', safe='')}:{quote(self.password or '', safe='')}@"
        return ";".join(
            f"sentinel://{who if self.password else ''}{_bracketed(host)}:{port}/{self.database}"
            for host, port in self.sentinels
        )

    def broker_options(self, *, patience_s: float) -> dict[str, Any]:
        """Return kombu's transport options for Sentinels (kombu.transport.redis.SentinelChannel)."""
        if not self.sentinels:
            return {}
        return {"master_name": self.service, "sentinel_kwargs": self._of_sentinels(patience_s)}

    def pool(self, *, patience_s: float, **options: Any) -> redis.ConnectionPool:
        """Return a pool of connections to the master.

        ``patience_s``: the timeout for connecting and for each response of Redis or a Sentinel. No command is
        retried. A command raises redis.RedisError if no master responds in time.
        """
        timeouts = {"socket_timeout": patience_s, "socket_connect_timeout": patience_s}
        if not self.sentinels:
            return redis.ConnectionPool.from_url(self.url, **timeouts, **options)
        return SentinelConnectionPool(
            self.service,
            Sentinel(list(self.sentinels), sentinel_kwargs=self._of_sentinels(patience_s)),
            db=self.database,
            username=self.username,
            password=self.password,
            **timeouts,
            **options,
        )

    @contextmanager
    def client(self, *, patience_s: float) -> Iterator[redis.Redis]:
        """Return a context manager with a client. At the end of the block its connections are closed."""
        pool = self.pool(patience_s=patience_s)
        try:
            yield redis.Redis(connection_pool=pool)
        finally:
            pool.disconnect()
            if isinstance(pool, SentinelConnectionPool):
                pool.sentinel_manager.close()

    def _of_sentinels(self, patience_s: float) -> dict[str, Any]:
        return {
            "username": self.sentinel_username,
            "password": self.sentinel_password,
            "socket_timeout": patience_s,
            "socket_connect_timeout": patience_s,
            # Without retries, the next Sentinel is tried immediately. By default redis-py would retry an
            # unreachable Sentinel for seconds.
            "retry": Retry(NoBackoff(), 0),
        }


def read_redis_url(url: str, *, variable: str) -> RedisUrl:
    """Parse ``url``. ``variable``: the setting that contains it, for errors.

    Raises ImproperlyConfigured. Its message never contains the password.
    """
    if not url.startswith("sentinel://"):
        return RedisUrl(url)
    address, _, query = url.removeprefix("sentinel://").partition("?")
    server, _, database = address.partition("/")
    who, _, where = server.rpartition("@")
    username, _, password = who.partition(":")
    options = {name: values[0] for name, values in parse_qs(query).items()}
    if unknown := sorted(options.keys() - _OPTIONS):
        raise _wrong(variable, f"its option {unknown[0]} is none of {', '.join(sorted(_OPTIONS))}")
    if "service" not in options:
        raise _wrong(variable, "?service= has to say which service the Sentinels watch")
    if database and not database.isdecimal():
        raise _wrong(variable, "after the hosts comes the number of a database, such as /0")
    return RedisUrl(
        url,
        sentinels=tuple(_host_and_port(each, variable) for each in where.split(",")),
        service=options["service"],
        database=int(database or 0),
        username=unquote(username) or None,
        password=unquote(password) or None,
        sentinel_username=options.get("sentinel_username"),
        sentinel_password=options.get("sentinel_password"),
    )


def broker_client(*, patience_s: float) -> AbstractContextManager[redis.Redis]:
    """Return a context manager with a new client of the broker, for queries that Celery has no function for.

    A command raises redis.RedisError if connecting or a response takes longer than ``patience_s`` seconds.
    """
    return _broker().client(patience_s=patience_s)


def broker_pool(*, patience_s: float) -> redis.ConnectionPool:
    """Return a new pool of connections to the broker; see ``RedisUrl.pool``."""
    return _broker().pool(patience_s=patience_s)


def _broker() -> RedisUrl:
    return read_redis_url(settings.REDIS_URL, variable="REDIS_URL")


def in_short(error: redis.RedisError) -> str:
    """Return the error's text without redis-py's details about each Sentinel, which can be very long."""
    return str(error).partition(" : ")[0]


def _host_and_port(text: str, variable: str) -> tuple[str, int]:
    try:
        found = urlsplit(f"//{text}")
        host, port = found.hostname, found.port or _PORT
    except ValueError:
        host = None
    if not host:
        raise _wrong(variable, "each of its hosts is a name or an address, or one with :port")
    return host, port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _wrong(variable: str, why: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"{variable} is not an address of Sentinels: {why}. Write {_FORM}, with %XX for special characters."
    )


log = logging.getLogger(__name__)

# The time after a failure during which the cache does not use Redis. Otherwise each call would wait for the
# timeout of an unresponsive Redis.
PAUSE_S = 5.0


class _Client(RedisCacheClient):
    """A client of Redis. If the URL names Sentinels, it finds the master through them."""

    def __init__(self, servers: list[str], *, patience_s: float) -> None:
        super().__init__(servers)
        self._pool = read_redis_url(servers[0], variable="CACHE_URL").pool(patience_s=patience_s)

    def _get_connection_pool(self, write: bool) -> redis.ConnectionPool:
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
            except redis.RedisError as error:
                self._pause(error)
        return self.UNKNOWN

    def _either(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() >= self._paused_until:
            try:
                return getattr(super(), name)(*args, **kwargs)
            except redis.RedisError as error:
                self._pause(error)
        return getattr(self._instead, name)(*args, **kwargs)

    def _pause(self, error: redis.RedisError) -> None:
        self._paused_until = time.monotonic() + PAUSE_S
        log.warning("Redis does not answer (%s); limits are kept per process", in_short(error))


def _forgiving(name: str) -> Callable[..., Any]:
    def call(self: FallbackRedisCache, *args: Any, **kwargs: Any) -> Any:
        return self._either(name, *args, **kwargs)

    call.__name__ = name
    return call


_FORGIVING = "add get set touch delete get_many has_key incr set_many delete_many clear"
for _name in _FORGIVING.split():
    setattr(FallbackRedisCache, _name, _forgiving(_name))
