"""Keeping the evidence of each try to converge a router, for as long as it says something that is needed."""

import time
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from portal.inventory.models import Router
from portal.vll.models import Attempt

# Of an answer: what differs each time, and what it says of ends.
_NUMBERS = frozenset({"generation", "held", "look"})
_ENDS = frozenset({"ends", "unchanged"})
# Rows in one transaction; and for how long, in seconds: what is left then is for the next round.
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
    """Keep one attempt: a row, or another time of the router's newest if that came to the same; how often.

    To the same comes what was wanted as before and answered as before. Of an answer, ``ends`` are those about
    which it says something else than what is stored.
    """
    last = router.attempts.defer("answer").order_by("-id").first()
    if (
        last is not None
        and (last.outcome, last.content_sha256) == (outcome, content_sha256)
        and last.generation <= generation
        and _says_the_same(last.answer, answer)
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


def _says_the_same(before: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether but for numbers this is the answer of before; one without ends says nothing new of any."""
    left_out = _NUMBERS if answer.get("ends") else _NUMBERS | _ENDS
    return _without(left_out, before) == _without(left_out, answer)


def _without(names: frozenset[str], answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in names}


def attempts_forget(*, before: datetime) -> int:
    """Delete the attempts of which the last time was before then; how many.

    Never a router's newest, nor what open orders lead back to, nor the last that says something of an end at
    a revision: that is the last of each order that routers answered. The oldest first, and no more at a time
    than a task may take.
    """
    begun = time.monotonic()
    looked_at, forgotten = _forget_batch(before)
    while looked_at == _BATCH and time.monotonic() - begun < _LONGEST_S:
        looked_at, deleted = _forget_batch(before)
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
