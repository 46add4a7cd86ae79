"""Liveness and readiness checks of this process, for load balancers and container engines."""

from threading import Lock
from time import monotonic

import redis
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.core.db.statements import rows_of
from portal.core.http import public
from portal.core.redis_servers import broker_client

# Redis is checked once in this many seconds at most, by one request at a time: anybody may call the check.
_BROKER_FRESH_S = 5.0
_BROKER_PATIENCE_S = 0.5


class _Broker:
    """The state of Redis. It is shown but does not affect readiness.

    While Redis is unavailable, the portal still accepts orders, and their tasks start later.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._checked_at: float | None = None
        self._state = "unknown"

    def state(self) -> str:
        """Return ``ok`` or ``unreachable``; ``unknown`` before the first check has ended.

        While another request checks Redis, this returns the result of the previous check.
        """
        if self._lock.acquire(blocking=False):
            try:
                if self._checked_at is None or monotonic() - self._checked_at > _BROKER_FRESH_S:
                    self._state, self._checked_at = self._check(), monotonic()
            finally:
                self._lock.release()
        return self._state

    def _check(self) -> str:
        try:
            with broker_client(patience_s=_BROKER_PATIENCE_S) as broker:
                broker.ping()
        except redis.RedisError:
            return "unreachable"
        return "ok"


class _Migrations:
    """The check that the database has the tables of this release.

    After the process has found the tables once, it does not check again.
    """

    def __init__(self) -> None:
        self._applied = False

    def state(self) -> str:
        """Return ``applied`` if all migrations are applied, otherwise ``pending``. Raises DatabaseError."""
        if not self._applied:
            executor = MigrationExecutor(connection)
            self._applied = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return "applied" if self._applied else "pending"


_broker = _Broker()
_migrations = _Migrations()


@public
def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200. It shows that this process responds."""
    return HttpResponse("ok\n", content_type="text/plain")


@public
def readyz(request: HttpRequest) -> JsonResponse:
    """Return 200 if this process can serve requests, otherwise 503.

    The database must be writable and must have this release's tables.
    """
    facts = {"database": "unreachable", "migrations": "unknown"}
    try:
        # On a standby, the value is "on" too.
        [(read_only,)] = rows_of("SHOW transaction_read_only")
        facts["database"] = "ok" if read_only == "off" else "read-only"
        facts["migrations"] = _migrations.state()
    except DatabaseError:
        pass
    ready = facts == {"database": "ok", "migrations": "applied"}
    return JsonResponse({"ready": ready, **facts, "broker": _broker.state()}, status=200 if ready else 503)
