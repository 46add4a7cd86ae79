"""Limits on requests per minute for each token, user or client address."""

from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.core import clock
from portal.core.http import client_address

_WINDOW_S = 60


class PerTokenAndUser(BaseThrottle):
    """Limit the requests of each token, and the requests of all tokens of a user together.

    ``LONGLINE_API_READS_PER_MIN`` and ``LONGLINE_API_WRITES_PER_MIN`` limit one token; 0 means no limit. All
    tokens of a user together may send ``LONGLINE_API_USER_LIMIT_FACTOR`` times as much, however many tokens
    the user has. A session without a token counts as a token of its user.

    The counters are in the cache. Their increments are atomic, unlike the increments in DRF's throttles. A
    request must not fail because the cache fails. While Redis cannot be reached, each process counts
    separately. A lost counter starts again from 0.
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
    """Return the names and limits of the counters: first the token's, then the user's.

    A request that exceeds the token's limit does not increment the user's counter.
    """
    token = f"user-{request.user.pk}" if request.auth is None else f"token-{request.auth.pk}"
    reads = request.method in SAFE_METHODS
    limit = settings.LONGLINE_API_READS_PER_MIN if reads else settings.LONGLINE_API_WRITES_PER_MIN
    kind = "reads" if reads else "writes"
    return [
        (f"api-{kind}-{token}", limit),
        (f"api-{kind}-all-of-user-{request.user.pk}", limit * settings.LONGLINE_API_USER_LIMIT_FACTOR),
    ]


class PerAddress(BaseThrottle):
    """Limit the requests of each client address to ``LONGLINE_ENROL_PER_MIN``; 0 means no limit.

    This is for views that need no token. All clients on a Unix socket count as one address.
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
    """Increment a counter. Return its value in this minute, and the seconds until the next minute."""
    window, into = divmod(clock.now().timestamp(), _WINDOW_S)
    key = f"{name}-{int(window)}"
    try:
        count = int(cache.incr(key))
    except ValueError:
        # The counter did not exist: this is the first request of the minute, or the cache lost the counter.
        # If ``add`` fails, another request has created the counter in between.
        count = 1 if cache.add(key, 1, timeout=2 * _WINDOW_S) else _again(key)
    return count, _WINDOW_S - into


def _again(key: str) -> int:
    try:
        return int(cache.incr(key))
    except ValueError:
        # The counter disappeared between the two calls: the cache was flushed, or another cache took over.
        return 1
