"""One worker at NetBox at a time, and when the next may try (as provisioning does it with routers)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import F, Q, QuerySet

from portal.core import clock
from portal.core.backoff import backoff
from portal.netbox_sync.errors import NetboxError
from portal.netbox_sync.models import NetboxState

# Longer than one answer may take (NETBOX_TOTAL_S); it is extended with every step.
CLAIM = timedelta(seconds=180)
FIRST_RETRY = timedelta(seconds=15)
LONGEST_RETRY = timedelta(minutes=15)


def state() -> NetboxState:
    """The one row."""
    found, _ = NetboxState.objects.get_or_create(pk=1)
    return found


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work at NetBox."""

    token: UUID

    def extend(self) -> None:
        """It lasts anew. Raises ClaimLost where it had lapsed and another worker has begun."""
        if not self._mine().update(claimed_until=clock.now() + CLAIM):
            raise ClaimLost

    def release(self) -> None:
        """Nobody is at work any more."""
        self._mine().update(claim=None, claimed_until=None)

    def note(self, **changes: object) -> None:
        """Write to the state, as long as the claim is ours."""
        self._mine().update(**changes)

    def failed(self, error: NetboxError) -> None:
        """NetBox is left alone for a while, longer each time, or for as long as it asks for."""
        row, now = state(), clock.now()
        wait = backoff(row.failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
        if error.retry_after_s is not None:
            wait = timedelta(seconds=error.retry_after_s)
        self.note(
            failures=F("failures") + 1,
            retry_at=now + wait,
            failing_since=row.failing_since or now,
            error=error.told,
        )

    def succeeded(self) -> None:
        """NetBox answers and takes what it is sent."""
        self.note(failures=0, retry_at=None, failing_since=None, error=None)

    def _mine(self) -> "QuerySet[NetboxState]":
        return NetboxState.objects.filter(pk=1, claim=self.token)


class ClaimLost(Exception):
    """Another worker has taken over."""


def claim(now: datetime) -> Claim | None:
    """None while somebody is at work."""
    state()
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    token = uuid4()
    if NetboxState.objects.filter(free, pk=1).update(claim=token, claimed_until=now + CLAIM):
        return Claim(token)
    return None
