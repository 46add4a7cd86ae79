"""The limit of requests by one token, or one address; counted per minute."""

from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.core import clock
from portal.core.client_address import client_address

_WINDOW_S = 60


class PerToken(BaseThrottle):
    """``LONGLINE_API_READS_PER_MIN`` and ``LONGLINE_API_WRITES_PER_MIN`` for each token; 0 = no limit.

    A session without a token counts as its user. The counters live in the cache and are raised atomically,
    which DRF's own throttles do not. The cache must never fail a request: the one in the settings counts
    per process while Redis is away, and a counter that got lost starts anew.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        reads = request.method in SAFE_METHODS
        limit = settings.LONGLINE_API_READS_PER_MIN if reads else settings.LONGLINE_API_WRITES_PER_MIN
        who = _who(request)
        if not limit or who is None:
            return True
        count, self._wait = _count(f"api-{'reads' if reads else 'writes'}-{who}")
        return bool(count <= limit)

    def wait(self) -> float:
        """Seconds until the next minute begins."""
        return self._wait


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


def _who(request: Request) -> str | None:
    if request.auth is not None:
        return f"token-{request.auth.pk}"
    return f"user-{request.user.pk}" if request.user else None


def _count(what: str) -> tuple[int, float]:
    """The count of this minute, this time included, and the seconds until the next begins."""
    window, into = divmod(clock.now().timestamp(), _WINDOW_S)
    key = f"{what}-{int(window)}"
    cache.add(key, 0, timeout=2 * _WINDOW_S)
    try:
        count = int(cache.incr(key))
    except ValueError:
        # Flushed, or gone over to another store, between the two calls.
        count = 1
    return count, _WINDOW_S - into
