"""How often one token may ask, counted per minute."""

from typing import Any

from django.conf import settings
from django.core.cache import cache
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.core import clock

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
        window, into = divmod(clock.now().timestamp(), _WINDOW_S)
        self._wait = _WINDOW_S - into
        key = f"api-{'reads' if reads else 'writes'}-{who}-{int(window)}"
        return bool(_count(key) <= limit)

    def wait(self) -> float:
        """Seconds until the next minute begins."""
        return self._wait


def _who(request: Request) -> str | None:
    if request.auth is not None:
        return f"token-{request.auth.pk}"
    return f"user-{request.user.pk}" if request.user else None


def _count(key: str) -> int:
    cache.add(key, 0, timeout=2 * _WINDOW_S)
    try:
        return cache.incr(key)
    except ValueError:
        # Flushed, or gone over to another store, between the two calls.
        return 1
