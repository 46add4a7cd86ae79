"""Reads from a replica of the database, for data that may be a few seconds old (ADR 53).

Only graphs, lists and exports use the replica. A request that writes never reads from the replica. After a
write, a user's requests read from the primary until the replica has the change. Permissions are always read
from the primary.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from django.conf import settings
from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections
from django.http import HttpRequest, HttpResponse

from portal.core.db.statements import rows_of
from portal.core.http import Middleware
from portal.core.redis_servers import FallbackRedisCache

log = logging.getLogger(__name__)

Read = TypeVar("Read")
ALIAS = "replica"
# The response header with the time of the data, if the data comes from the replica.
AS_OF = "Longline-As-Of"
# The time after a failure during which this process does not use the replica. Otherwise every request would
# wait for the timeout of an unreachable replica.
PAUSE_S = 10.0
# The time after a user's write during which the portal checks that the replica has the change. A replica that
# lags by more than this time is not used at all.
_REMEMBERED_S = 600
_READS = ("GET", "HEAD")
_BEHIND_EVERYTHING = 2**63
_STATE = """
SELECT pg_last_xact_replay_timestamp(), pg_last_wal_replay_lsn() - '0/0'::pg_lsn
WHERE pg_is_in_recovery()
"""
_WRITTEN = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


class AnyRequest(Protocol):
    """A request of Django, or of the REST framework, which wraps Django's request."""

    method: Any
    user: Any


class _Pause:
    """The time (``time.monotonic``) until which this process does not use the replica."""

    until = 0.0


def exists() -> bool:
    return ALIAS in connections.databases


def from_replica(request: AnyRequest, read: Callable[[], Read]) -> Read:
    """Return the result of ``read``. It reads from the replica if the replica is reachable and fresh enough.

    Otherwise it reads from the primary. If the replica fails during ``read``, ``read`` is called again with
    the primary. ``read`` must not return a lazy queryset. For data of the replica, the response gets the
    header ``AS_OF``, and ``request.as_of`` is the time of the data.
    """
    as_of = usable_as_of(request)
    if as_of is None:
        return read()
    try:
        with _replica_connection():
            found = read()
    except (OperationalError, InterfaceError) as error:
        _pause(error)
        return read()
    _set_as_of(request, as_of)
    return found


def will_be_streamed(request: AnyRequest) -> None:
    """Set the header ``AS_OF`` of a streamed response, whose data is read after its headers are sent."""
    as_of = usable_as_of(request)
    if as_of is not None:
        _set_as_of(request, as_of)


def _set_as_of(request: AnyRequest, as_of: datetime) -> None:
    django_request: Any = getattr(request, "_request", request)
    django_request.as_of = as_of


def usable_as_of(request: AnyRequest) -> datetime | None:
    """Return the time of the newest data in the replica. The replica has all data up to that time.

    Return None if this request must read from the primary.
    """
    if not exists() or request.method not in _READS or time.monotonic() < _Pause.until:
        return None
    # The caller's transaction must see its own writes.
    if connection.in_atomic_block:
        return None
    written = cache.get_shared(_key(request.user))  # type: ignore[attr-defined]
    if written is FallbackRedisCache.UNKNOWN:
        return None
    try:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(_STATE)
            # Without a row, the server is not a replica (any more).
            as_of, replayed = cursor.fetchone() or (None, 0)
    except (OperationalError, InterfaceError) as error:
        _pause(error)
        return None
    oldest = datetime.now(tz=UTC) - timedelta(seconds=settings.LONGLINE_REPLICA_MAX_AGE_S)
    if as_of is None or as_of < oldest or (written is not None and replayed < int(written)):
        return None
    return as_of  # type: ignore[no-any-return]


def is_read_now() -> bool:
    """Return whether this thread reads from the replica."""
    return exists() and connections[DEFAULT_DB_ALIAS] is connections[ALIAS]


@contextmanager
def _replica_connection() -> Iterator[None]:
    """Make this thread use the replica as its default database within the block.

    The function replaces the connection, because most queries of graphs and exports are raw SQL. A database
    router of Django has no effect on raw SQL.
    """
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[ALIAS]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = primary


def _pause(error: Exception) -> None:
    _Pause.until = time.monotonic() + PAUSE_S
    connections[ALIAS].close()
    log.warning("the replica is not used for %g s: %s", PAUSE_S, error)


def _key(user: Any) -> str:
    return f"written:{user.pk}"


class ReplicaMiddleware(Middleware):
    """Add the time of the data to responses, and store the WAL position after each user's last write."""

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not exists():
            return response
        as_of = getattr(request, "as_of", None)
        if as_of is not None:
            response[AS_OF] = as_of.isoformat()
        user = getattr(request, "user", None)
        if request.method not in _READS and user is not None and user.pk is not None:
            cache.set(_key(user), _written(), _REMEMBERED_S)
        return response


def _written() -> int:
    """Return the primary's position in the WAL, or the highest possible one if it cannot be read."""
    try:
        [(written,)] = rows_of(_WRITTEN)
    except (OperationalError, InterfaceError):
        return _BEHIND_EVERYTHING
    return int(written)
