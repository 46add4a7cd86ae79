"""The lock of a router: one worker at a time, by compare-and-swap, and never longer than a claim lasts."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import Case, F, Q, QuerySet, Value, When

from portal.core.background_work import backoff
from portal.vll.convergence.requests import FIRST_PAUSE
from portal.vll.models import RouterConvergence

# Longer than one exchange with an agent may take (agent_client.TOTAL_S). Short enough that, after a worker
# was killed, the sweeper sends its router's message again within 75 s.
CLAIM = timedelta(seconds=45)
FIRST_RETRY = timedelta(seconds=1)
LONGEST_RETRY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a router. ``failures``: the number of consecutive failed attempts before this
    claim.

    ``wanted``: the value of RouterConvergence.wanted at the claim. An intent made under this claim contains
    at least the changes that this number counts.
    """

    router_id: int
    token: UUID
    failures: int
    last_answered_at: datetime | None
    wanted: int

    def extend(self, *, now: datetime) -> bool:
        """Return whether the claim is still valid; if so, renew its full duration from ``now``."""
        return bool(self._mine().update(claimed_until=now + CLAIM))

    def release_accepted(self, *, retry_in: timedelta | None, now: datetime) -> None:
        """Release the claim after the agent accepted an intent.

        ``retry_in``: None if the agent has confirmed all ends. If a change was requested during the claim,
        the retry is sooner, because the intent may not contain the change.
        """
        next_query_at = retry_in and Case(
            When(changed=True, then=Value(now + FIRST_PAUSE)),
            default=Value(now + retry_in),
        )
        self._mine().update(
            claim=None,
            claimed_until=None,
            failures=0,
            retry_at=None,
            last_error="",
            last_answered_at=now,
            answered=self.wanted,
            # Changes requested after the claim may be missing from the accepted intent.
            intent_requested=Case(When(wanted=self.wanted, then=Value(False)), default=F("intent_requested")),
            next_query_at=next_query_at,
        )

    def release_failed(self, *, error: str, now: datetime) -> None:
        """Release the claim after a refusal, or if there was no usable response.

        The portal then waits before the next attempt, longer after each failure.
        """
        self._mine().update(
            claim=None,
            claimed_until=None,
            failures=F("failures") + 1,
            retry_at=now + backoff(self.failures, first=FIRST_RETRY, longest=LONGEST_RETRY),
            last_error=error,
        )

    def _mine(self) -> QuerySet[RouterConvergence]:
        return RouterConvergence.objects.filter(router_id=self.router_id, claim=self.token)


def is_free(*, now: datetime, prefix: str = "") -> Q:
    """Return a filter for RouterConvergence rows that may be claimed.

    ``prefix``: the look-up path to these rows, including the last ``__``.
    """
    return (Q(**{f"{prefix}claimed_until": None}) | Q(**{f"{prefix}claimed_until__lte": now})) & (
        Q(**{f"{prefix}retry_at": None}) | Q(**{f"{prefix}retry_at__lte": now})
    )


def claim_router(router_id: int, *, now: datetime) -> Claim | None:
    """Claim the router. Return None if another worker has claimed it, or if its pause is not over."""
    RouterConvergence.objects.bulk_create([RouterConvergence(router_id=router_id)], ignore_conflicts=True)
    token = uuid4()
    row = RouterConvergence.objects.filter(router_id=router_id)
    if not row.filter(is_free(now=now)).update(claim=token, claimed_until=now + CLAIM, changed=False):
        return None
    mine = row.filter(claim=token).first()
    if mine is None:
        return None
    return Claim(router_id, token, mine.failures, mine.last_answered_at, mine.wanted)
