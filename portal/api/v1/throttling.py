"""The limits of requests per minute, for one token, one user or one address."""

from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.core import clock
from portal.core.client_address import client_address

_WINDOW_S = 60


class PerTokenAndUser(BaseThrottle):
    """Limit the requests of each token, and of each user by all their tokens together; 0 = no limit.

    ``LONGLINE_API_READS_PER_MIN`` and ``LONGLINE_API_WRITES_PER_MIN`` are for a token. All tokens of a user
    together may send ``LONGLINE_API_USER_LIMIT_FACTOR`` times as much, regardless of their number. A session
    without a token counts as a token of its user. The counters are in the cache and are incremented
    atomically, unlike those of DRF's throttles. A failure of the cache must not fail a request: the cache in
    the settings counts per process while Redis cannot be reached, and a lost counter starts again from 0.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        if not request.user:
            return True
        for name, limit in _limits(request):
            if limit:
                count, self._wait = _count(name)
                if count > limit:
                    return False
        return True

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return self._wait


def _limits(request: Request) -> list[tuple[str, int]]:
    """Return the names and limits of the counters. Requests beyond the first limit do not count further."""
    token = f"user-{request.user.pk}" if request.auth is None else f"token-{request.auth.pk}"
    reads = request.method in SAFE_METHODS
    limit = settings.LONGLINE_API_READS_PER_MIN if reads else settings.LONGLINE_API_WRITES_PER_MIN
    kind = "reads" if reads else "writes"
    return [
        (f"api-{kind}-{token}", limit),
        (f"api-{kind}-all-of-user-{request.user.pk}", limit * settings.LONGLINE_API_USER_LIMIT_FACTOR),
    ]


class PerAddress(BaseThrottle):
    """Limit each source address to ``LONGLINE_ENROL_PER_MIN``, for views without a token; 0 = no limit.

    Callers on a Unix socket count as one.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        if not settings.LONGLINE_ENROL_PER_MIN:
            return True
        count, self._wait = _count(f"enrol-{client_address(request._request) or 'local'}")
        return bool(count <= settings.LONGLINE_ENROL_PER_MIN)

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return self._wait


def _count(name: str) -> tuple[int, float]:
    """Increment a counter. Return its value in this minute, and the seconds until the next minute begins."""
    window, into = divmod(clock.now().timestamp(), _WINDOW_S)
    key = f"{name}-{int(window)}"
    try:
        count = int(cache.incr(key))
    except ValueError:
        # This is the first request of the minute, or the counter was lost. Another request may have added it.
        count = 1 if cache.add(key, 1, timeout=2 * _WINDOW_S) else _again(key)
    return count, _WINDOW_S - into


def _again(key: str) -> int:
    try:
        return int(cache.incr(key))
    except ValueError:
        # Between the two calls, the cache was flushed or another store took over.
        return 1
