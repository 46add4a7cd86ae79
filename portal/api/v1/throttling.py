"""The limits of requests by one token, one user or one address; counted per minute."""

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
    together may send ``LONGLINE_API_USER_LIMIT_FACTOR`` times as much, however many they are. A session
    without a token counts as a token of its user. The counters live in the cache and are raised atomically,
    which DRF's own throttles do not. The cache must never fail a request: the one in the settings counts per
    process while Redis is away, and a counter that got lost starts again.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        if not request.user:
            return True
        for what, limit in _limits(request):
            if limit:
                count, self._wait = _count(what)
                if count > limit:
                    return False
        return True

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return self._wait


def _limits(request: Request) -> list[tuple[str, int]]:
    """Return what is counted and its limit. What its token may not send is not counted for the user."""
    token = f"user-{request.user.pk}" if request.auth is None else f"token-{request.auth.pk}"
    reads = request.method in SAFE_METHODS
    limit = settings.LONGLINE_API_READS_PER_MIN if reads else settings.LONGLINE_API_WRITES_PER_MIN
    what = "reads" if reads else "writes"
    return [
        (f"api-{what}-{token}", limit),
        (f"api-{what}-all-of-user-{request.user.pk}", limit * settings.LONGLINE_API_USER_LIMIT_FACTOR),
    ]


class PerAddress(BaseThrottle):
    """``LONGLINE_ENROL_PER_MIN`` for each source address, where no token is asked for; 0 = no limit.

    Callers on a Unix socket count as one.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        if not settings.LONGLINE_ENROL_PER_MIN:
            return True
        count, self._wait = _count(f"enrol-{client_address(request._request) or 'local'}")
        return bool(count <= settings.LONGLINE_ENROL_PER_MIN)

    def wait(self) -> float:
        """Seconds until the next minute begins."""
        return self._wait


def _count(what: str) -> tuple[int, float]:
    """The count of this minute, this time included, and the seconds until the next begins."""
    window, into = divmod(clock.now().timestamp(), _WINDOW_S)
    key = f"{what}-{int(window)}"
    try:
        count = int(cache.incr(key))
    except ValueError:
        # The first of this minute, or the counter was lost; another request may be as quick.
        count = 1 if cache.add(key, 1, timeout=2 * _WINDOW_S) else _again(key)
    return count, _WINDOW_S - into


def _again(key: str) -> int:
    try:
        return int(cache.incr(key))
    except ValueError:
        # Flushed, or gone over to another store, between the two calls.
        return 1
