"""The lock of a router: one at a time, by compare-and-swap, and never for longer than a claim lasts."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import Case, F, Q, QuerySet, Value, When

from portal.core.backoff import backoff
from portal.vll.models import RouterConvergence
from portal.vll.operations.convergence_requests import ASK_AGAIN

# Longer than one exchange with an agent may take (agent_client.TOTAL_S), short enough that the sweeper
# resumes a killed worker's router within 75 s.
CLAIM = timedelta(seconds=45)
FIRST_RETRY = timedelta(seconds=1)
LONGEST_RETRY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a router; ``failures`` in a row before this try.

    ``wanted``: which changes an intent that is made under this claim has at least.
    """

    router_id: int
    token: UUID
    failures: int
    last_answered_at: datetime | None
    wanted: int

    def extend(self, *, now: datetime) -> bool:
        """Whether the claim still is ours; if so it lasts as long again from ``now``."""
        return bool(self._mine().update(claimed_until=now + CLAIM))

    def release_answered(self, *, ask_again_in: timedelta | None, now: datetime) -> None:
        """The agent accepted an intent. ``ask_again_in``: as it cannot confirm all of it yet; None: it did.

        Sooner, when something changed meanwhile: the answer may not know of it.
        """
        ask_at = ask_again_in and Case(
            When(changed=True, then=Value(now + ASK_AGAIN)),
            default=Value(now + ask_again_in),
        )
        self._mine().update(
            claim=None,
            claimed_until=None,
            failures=0,
            retry_at=None,
            last_error="",
            last_answered_at=now,
            answered=self.wanted,
            # What was wanted since is not in the intent that was answered.
            ask_anew=Case(When(wanted=self.wanted, then=Value(False)), default=F("ask_anew")),
            ask_at=ask_at,
        )

    def release_failed(self, *, error: str, now: datetime) -> None:
        """No usable answer, or a refusal: the router is left alone for a while, longer each time."""
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
    """RouterConvergence rows that may be claimed; ``prefix`` is the path to them, with its ``__``."""
    return (Q(**{f"{prefix}claimed_until": None}) | Q(**{f"{prefix}claimed_until__lte": now})) & (
        Q(**{f"{prefix}retry_at": None}) | Q(**{f"{prefix}retry_at__lte": now})
    )


def claim_router(router_id: int, *, now: datetime) -> Claim | None:
    """Claim the router, or None while somebody works on it or its backoff lasts."""
    RouterConvergence.objects.bulk_create([RouterConvergence(router_id=router_id)], ignore_conflicts=True)
    token = uuid4()
    row = RouterConvergence.objects.filter(router_id=router_id)
    if not row.filter(is_free(now=now)).update(
        claim=token, claimed_until=now + CLAIM, changed=False, resent_at=None
    ):
        return None
    mine = row.filter(claim=token).first()
    if mine is None:
        return None
    return Claim(router_id, token, mine.failures, mine.last_answered_at, mine.wanted)
