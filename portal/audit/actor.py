"""The actor of changes, for the audit triggers. It is set once in each transaction that writes."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from celery import Task
from django.contrib.auth.signals import user_logged_in
from django.db import connection, transaction
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase

from portal.accounts.models import User
from portal.core.db.sessions import pipelined
from portal.core.http import current_request_id

_READING = {"GET", "HEAD", "OPTIONS", "TRACE"}
_WRITING = ("insert", "update", "delete", "merge", "with")
# Settings that pghistory's triggers read. PostgreSQL forgets them at the end of the transaction, so the next
# user of the connection does not inherit them.
_SET_ACTOR = (
    "SELECT set_config('pghistory.context_id', %s, true), set_config('pghistory.context_metadata', %s, true)"
)


class AuditMiddleware:
    """Record the session's user and the id of the request with all changes of the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method in _READING:
            return self.get_response(request)
        with working(request_id=current_request_id.get()):
            if request.user.is_authenticated:
                acting(user_id=request.user.pk, username=request.user.get_username())
            return self.get_response(request)


def acting(*, user_id: int, username: str, token: str = "") -> None:
    """Record this user with all later changes of the request, and the prefix of the API token in use."""
    if work := _at_work.get():
        work.add(user=user_id, username=username, **({"token": token} if token else {}))


@receiver(user_logged_in)
def _signed_in(*, user: User, **_sent: object) -> None:
    acting(user_id=user.pk, username=user.get_username())


class AuditedTask(Task):  # type: ignore[type-arg]
    """A Celery task that records its name with all its changes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with working(task=self.name):
            return super().__call__(*args, **kwargs)


@contextmanager
def working(**who: Any) -> Iterator[None]:
    """Record ``who`` with all changes inside the block. A nested block adds its facts to the outer ones."""
    if outer := _at_work.get():
        outer.add(**who)
        yield
        return
    work = _Work(who)
    token = _at_work.set(work)
    try:
        with connection.execute_wrapper(work):
            yield
    finally:
        _at_work.reset(token)


class _Work:
    """Send the actor together with the first statement of each transaction that writes.

    pghistory's own context would send the actor with every statement, which costs as much as the statement.
    """

    def __init__(self, who: dict[str, Any]) -> None:
        self._id = str(uuid4())
        self._who = who
        self._set_in: list[Any] | None = None

    def add(self, **who: Any) -> None:
        self._who = {**self._who, **who}
        self._set_in = None

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        database = context["connection"]
        if self._is_set(database) or not sql.lstrip()[:6].lower().startswith(_WRITING):
            return execute(sql, params, many, context)
        with nullcontext() if database.in_atomic_block else transaction.atomic(), pipelined():
            execute(_SET_ACTOR, (self._id, json.dumps(self._who)), False, context)
            self._set_in = database.run_on_commit
            return execute(sql, params, many, context)

    def _is_set(self, database: Any) -> bool:
        # Django creates a new list for each transaction and after each rollback to a savepoint. In exactly
        # these cases, PostgreSQL has no settings or has forgotten them.
        return bool(database.in_atomic_block) and self._set_in is database.run_on_commit


_at_work: ContextVar[_Work | None] = ContextVar("at_work", default=None)
