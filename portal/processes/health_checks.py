"""Whether this process lives, and whether it can do its work: for load balancers and container engines."""

from threading import Lock
from time import monotonic

import redis
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.core.broker_client import broker_client
from portal.core.view_permission import public

# Redis is asked no more often than that, and never by two requests at once: strangers may ask us.
_BROKER_FRESH_S = 5.0
_BROKER_PATIENCE_S = 0.5


class _Broker:
    """Noted, and no condition: orders are accepted and wait in the outbox while Redis is away."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked_at: float | None = None
        self._state = "unknown"

    def state(self) -> str:
        """``ok`` or ``unreachable``; whoever comes while it is being asked gets what was known."""
        if self._lock.acquire(blocking=False):
            try:
                if self._asked_at is None or monotonic() - self._asked_at > _BROKER_FRESH_S:
                    self._state, self._asked_at = self._ask(), monotonic()
            finally:
                self._lock.release()
        return self._state

    def _ask(self) -> str:
        try:
            with broker_client(patience_s=_BROKER_PATIENCE_S) as broker:
                broker.ping()
        except redis.RedisError:
            return "unreachable"
        return "ok"


class _Migrations:
    """The tables fit this release's code; once they do they stay so for the life of a process."""

    def __init__(self) -> None:
        self._applied = False

    def state(self) -> str:
        """``applied`` or ``pending``. Raises DatabaseError."""
        if not self._applied:
            executor = MigrationExecutor(connection)
            self._applied = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        return "applied" if self._applied else "pending"


_broker = _Broker()
_migrations = _Migrations()


@public
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while this process answers at all."""
    return HttpResponse("ok\n", content_type="text/plain")


@public
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when requests can be served: the database takes writes and has this release's tables; else 503."""
    facts = {"database": "unreachable", "migrations": "unknown"}
    try:
        with connection.cursor() as cursor:
            # Also "on" of a standby.
            cursor.execute("SHOW transaction_read_only")
            (read_only,) = cursor.fetchone()
        facts["database"] = "ok" if read_only == "off" else "read-only"
        facts["migrations"] = _migrations.state()
    except DatabaseError:
        pass
    ready = facts == {"database": "ok", "migrations": "applied"}
    return JsonResponse({"ready": ready, **facts, "broker": _broker.state()}, status=200 if ready else 503)
