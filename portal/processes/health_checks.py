"""Liveness and readiness of this process, for load balancers and container engines."""

from threading import Lock
from time import monotonic

import redis
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.core.broker_client import broker_client
from portal.core.view_permission import public

# Redis is checked at most once in this time, and never by two requests at once: anybody may call the check.
_BROKER_FRESH_S = 5.0
_BROKER_PATIENCE_S = 0.5


class _Broker:
    """The state of Redis: reported, but no condition. While Redis is away, orders are accepted and wait in
    the outbox.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._checked_at: float | None = None
        self._state = "unknown"

    def state(self) -> str:
        """Return ``ok`` or ``unreachable``.

        While another request checks, the last known state is returned.
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
    """The check that the tables fit this release's code. A positive result is kept for the life of the
    process.
    """

    def __init__(self) -> None:
        self._applied = False

    def state(self) -> str:
        """Return ``applied`` or ``pending``. Raises DatabaseError."""
        if not self._applied:
            executor = MigrationExecutor(connection)
            self._applied = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return "applied" if self._applied else "pending"


_broker = _Broker()
_migrations = _Migrations()


@public
def healthz(request: HttpRequest) -> HttpResponse:
    """Return 200 as long as this process responds."""
    return HttpResponse("ok\n", content_type="text/plain")


@public
def readyz(request: HttpRequest) -> JsonResponse:
    """Return 200 if requests can be served: the database is writable and has this release's tables.

    Else 503.
    """
    facts = {"database": "unreachable", "migrations": "unknown"}
    try:
        with connection.cursor() as cursor:
            # Also "on" for a standby.
            cursor.execute("SHOW transaction_read_only")
            (read_only,) = cursor.fetchone()
        facts["database"] = "ok" if read_only == "off" else "read-only"
        facts["migrations"] = _migrations.state()
    except DatabaseError:
        pass
    ready = facts == {"database": "ok", "migrations": "applied"}
    return JsonResponse({"ready": ready, **facts, "broker": _broker.state()}, status=200 if ready else 503)
