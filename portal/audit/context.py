"""Who is at work, for the triggers: it travels to PostgreSQL with each statement that writes."""

from collections.abc import Callable
from typing import Any

import pghistory
from celery import Task
from django.http import HttpRequest, HttpResponseBase

from portal.core.request_id import current_request_id

_READING = {"GET", "HEAD", "OPTIONS", "TRACE"}


class AuditMiddleware:
    """Names the session's user and the request in whatever the request changes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method in _READING:
            return self.get_response(request)
        with pghistory.context(request_id=current_request_id.get()):
            if request.user.is_authenticated:
                acting(user_id=request.user.pk, username=request.user.get_username())
            return self.get_response(request)


def acting(*, user_id: int, username: str, token: str = "") -> None:
    """From now on in this request it is this user, through the API token of that prefix if there is one."""
    pghistory.context(user=user_id, username=username, **({"token": token} if token else {}))


class AuditedTask(Task):  # type: ignore[type-arg]
    """Names the task in whatever it changes."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with pghistory.context(task=self.name):
            return super().__call__(*args, **kwargs)
