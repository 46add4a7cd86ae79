"""A lock that lets only one worker use NetBox at a time, and the time of the next attempt after a failure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import F, Q, QuerySet

from portal.core import clock
from portal.core.backoff import backoff
from portal.netbox_sync.errors import NetboxError
from portal.netbox_sync.models import NetboxState

# The duration of a claim. It must be longer than a response may take (NETBOX_TOTAL_S). Each step of a run
# extends the claim.
CLAIM = timedelta(seconds=180)
FIRST_RETRY = timedelta(seconds=15)
LONGEST_RETRY = timedelta(minutes=15)


def state() -> NetboxState:
    """Return the only row of NetboxState. Create it if it does not exist."""
    found, _ = NetboxState.objects.get_or_create(pk=1)
    return found


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of one worker to use NetBox."""

    token: UUID

    def extend(self) -> None:
        """Extend the claim. Raises ClaimLost if another worker has taken over after the claim expired."""
        if not self._mine().update(claimed_until=clock.now() + CLAIM):
            raise ClaimLost

    def release(self) -> None:
        """Release the claim, so that another worker may use NetBox."""
        self._mine().update(claim=None, claimed_until=None)

    def note(self, **changes: object) -> None:
        """Change fields of NetboxState. Has no effect if another worker has taken over."""
        self._mine().update(**changes)

    def failed(self, error: NetboxError) -> None:
        """Record a failure, and the pause before the next attempt.

        The pause doubles with each failure. If NetBox's response contained a pause, that pause is used.
        """
        row, now = state(), clock.now()
        wait = backoff(row.failures, first=FIRST_RETRY, longest=LONGEST_RETRY)
        if error.retry_after_s is not None:
            wait = timedelta(seconds=error.retry_after_s)
        self.note(
            failures=F("failures") + 1,
            retry_at=now + wait,
            failing_since=row.failing_since or now,
            error=error.record,
        )

    def succeeded(self) -> None:
        """Record that NetBox responds and accepts writes: the failure is over."""
        self.note(failures=0, retry_at=None, failing_since=None, error=None)

    def _mine(self) -> "QuerySet[NetboxState]":
        return NetboxState.objects.filter(pk=1, claim=self.token)


class ClaimLost(Exception):
    """The claim has expired, and another worker has taken over."""


def claim(now: datetime) -> Claim | None:
    """Return a new claim; None while another worker has a claim that has not expired."""
    state()
    free = Q(claimed_until=None) | Q(claimed_until__lte=now)
    token = uuid4()
    if NetboxState.objects.filter(free, pk=1).update(claim=token, claimed_until=now + CLAIM):
        return Claim(token)
    return None
