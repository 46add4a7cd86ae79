"""Keeping the evidence of each try to converge a router."""

from datetime import datetime
from typing import Any

from portal.inventory.models import Router
from portal.vll.models import Attempt


def attempt_record(
    *,
    router: Router,
    generation: int,
    intent_sha256: str,
    outcome: Attempt.Outcome,
    answer: dict[str, Any],
    started_at: datetime,
    now: datetime,
) -> Attempt:
    """Append one attempt; it can never be changed or removed afterwards."""
    return Attempt.objects.create(
        router=router,
        generation=generation,
        intent_sha256=intent_sha256,
        outcome=outcome,
        answer=answer,
        started_at=started_at,
        finished_at=now,
    )
