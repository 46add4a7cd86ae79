"""Keep the evidence of attempts to converge a router for as long as it is needed."""

import time
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from portal.inventory.models import Router
from portal.vll.models import Attempt

# _NUMBERS: members that differ in every answer. _ENDS: the members about ends.
_NUMBERS = frozenset({"generation", "held", "look"})
_ENDS = frozenset({"ends", "unchanged"})
# The number of rows in one transaction, and the time limit in seconds. The next round handles the rest.
_BATCH = 1000
_LONGEST_S = 30.0


def attempt_record(
    *,
    router: Router,
    generation: int,
    intent_sha256: str,
    content_sha256: str,
    outcome: Attempt.Outcome,
    answer: dict[str, Any],
    started_at: datetime,
    now: datetime,
) -> int:
    """Record an attempt. If the router's newest attempt is equal, only increase its count. Return the count.

    Attempts are equal if their outcomes, wanted states and answers are equal. The member ``ends`` of an
    answer lists only ends whose answer differs from the stored one.
    """
    last = router.attempts.defer("answer").order_by("-id").first()
    if (
        last is not None
        and (last.outcome, last.content_sha256) == (outcome, content_sha256)
        and last.generation <= generation
        and _is_same_answer(last.answer, answer)
    ):
        mine = Attempt.objects.filter(pk=last.pk, times=last.times)
        if mine.update(
            times=last.times + 1,
            generation=generation,
            intent_sha256=intent_sha256,
            finished_at=max(now, last.finished_at),
        ):
            return last.times + 1
    Attempt.objects.create(
        router=router,
        generation=generation,
        intent_sha256=intent_sha256,
        content_sha256=content_sha256,
        outcome=outcome,
        answer=answer,
        started_at=started_at,
        finished_at=now,
    )
    return 1


def _is_same_answer(before: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Return whether the answers are equal apart from numbers.

    In an answer without ``ends``, the answer about each end equals the stored one.
    """
    left_out = _NUMBERS if answer.get("ends") else _NUMBERS | _ENDS
    return _without(left_out, before) == _without(left_out, answer)


def _without(names: frozenset[str], answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in names}


def attempts_forget(*, before: datetime) -> int:
    """Delete the attempts that were last repeated before ``before``; return how many.

    Three kinds stay: a router's newest attempt, the attempts of open orders, and, for each end and revision,
    the last attempt with an answer about them. The third kind includes the last answer to each order. The
    oldest attempts are deleted first. The next round continues if this one reaches the time limit.
    """
    begun = time.monotonic()
    examined, forgotten = _forget_batch(before)
    while examined == _BATCH and time.monotonic() - begun < _LONGEST_S:
        examined, deleted = _forget_batch(before)
        forgotten += deleted
    return forgotten


@transaction.atomic
def _forget_batch(before: datetime) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('longline.attempts_before', %s, true)", [before.isoformat()])
        cursor.execute(_OLD, {"before": before, "most": _BATCH})
        old = [pk for (pk,) in cursor.fetchall()]
        cursor.execute(_KEEP, [old])
        cursor.execute(_FORGET, [old])
        return len(old), cursor.rowcount


_OLD = """
SELECT a.id FROM vll_attempt a
WHERE NOT a.kept AND a.started_at < %(before)s AND a.finished_at < %(before)s AND NOT attempt_is_needed(a)
ORDER BY a.started_at LIMIT %(most)s
"""
_KEEP = "UPDATE vll_attempt a SET kept = true WHERE a.id = ANY(%s) AND attempt_has_a_last_word(a)"
_FORGET = "DELETE FROM vll_attempt WHERE id = ANY(%s) AND NOT kept"
