"""Reading from a replica of the database, where what is read may be a few seconds old (ADR 53).

Graphs, lists and exports alone ask for it. No request that writes reads there, nobody who has just written
something does before the replica has that too, and who may see what is asked of the primary each time.
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

from portal.core.fallback_cache import FallbackRedisCache

log = logging.getLogger(__name__)

Read = TypeVar("Read")
ALIAS = "replica"
# The header that says as of when an answer is that was read from the replica.
AS_OF = "Longline-As-Of"
# How long it is left alone after it failed: one that is cut off must not cost its timeout at every request.
REST_S = 10.0
# For so long it is known who has written what the replica may not have yet: it is left alone far earlier.
_REMEMBERED_S = 600
_READS = ("GET", "HEAD")
_BEHIND_EVERYTHING = 2**63
_STATE = """
SELECT pg_last_xact_replay_timestamp(), pg_last_wal_replay_lsn() - '0/0'::pg_lsn
WHERE pg_is_in_recovery()
"""
_WRITTEN = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


class Asking(Protocol):
    """Django's request, or REST framework's around it."""

    method: Any
    user: Any


class _Rest:
    """Of this process: until when (``time.monotonic``) the replica is left alone."""

    until = 0.0


def exists() -> bool:
    return ALIAS in connections.databases


def from_replica(request: Asking, read: Callable[[], Read]) -> Read:
    """What ``read`` returns, of the replica where it is at hand and fresh enough, else of the primary.

    ``read`` must not leave rows to be read later; where the replica fails meanwhile, it is called once more.
    The answer then bears ``AS_OF``, and a template has ``request.as_of``: a moment, None of the primary.
    """
    as_of = usable_as_of(request)
    if as_of is None:
        return read()
    try:
        with _reading_there():
            found = read()
    except (OperationalError, InterfaceError) as error:
        _leave_alone(error)
        return read()
    _tell(request, as_of)
    return found


def will_be_streamed(request: Asking) -> None:
    """Say as of when an answer is that is read with ``from_replica`` after its head has been sent."""
    as_of = usable_as_of(request)
    if as_of is not None:
        _tell(request, as_of)


def _tell(request: Asking, as_of: datetime) -> None:
    told: Any = getattr(request, "_request", request)
    told.as_of = as_of


def usable_as_of(request: Asking) -> datetime | None:
    """The moment up to which the replica has everything; None where this request is to ask the primary."""
    if not exists() or request.method not in _READS or time.monotonic() < _Rest.until:
        return None
    # Somebody's own transaction sees what it wrote.
    if connection.in_atomic_block:
        return None
    written = cache.get_shared(_key(request.user))  # type: ignore[attr-defined]
    if written is FallbackRedisCache.UNKNOWN:
        return None
    try:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(_STATE)
            # No row: it is no replica (any more).
            as_of, replayed = cursor.fetchone() or (None, 0)
    except (OperationalError, InterfaceError) as error:
        _leave_alone(error)
        return None
    oldest = datetime.now(tz=UTC) - timedelta(seconds=settings.LONGLINE_REPLICA_MAX_AGE_S)
    if as_of is None or as_of < oldest or (written is not None and replayed < int(written)):
        return None
    return as_of  # type: ignore[no-any-return]


def is_read_now() -> bool:
    """Whether this thread reads from the replica."""
    return exists() and connections[DEFAULT_DB_ALIAS] is connections[ALIAS]


@contextmanager
def _reading_there() -> Iterator[None]:
    """Within the block, everything that this thread reads comes from the replica; it takes no writes.

    The connection itself changes places: most of what graphs and exports read is SQL of our own, of which a
    router of Django's learns nothing.
    """
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[ALIAS]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = primary


def _leave_alone(error: Exception) -> None:
    _Rest.until = time.monotonic() + REST_S
    connections[ALIAS].close()
    log.warning("the replica is left alone for %g s: %s", REST_S, error)


def _key(user: Any) -> str:
    return f"written:{user.pk}"


class ReplicaMiddleware:
    """Says of answers as of when they are, and remembers who has written something."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

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
    """The place in the WAL behind all that is committed; behind everything where the primary cannot say."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_WRITTEN)
            (written,) = cursor.fetchone()
    except (OperationalError, InterfaceError):
        return _BEHIND_EVERYTHING
    return int(written)
