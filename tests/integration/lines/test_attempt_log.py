"""Attempts to converge routers: which of them are deleted, by whom, and which stay."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from portal.accounts.models import User
from portal.core import clock
from portal.telemetry.tasks import keep_partitions
from portal.vll.models import Attempt, Vll
from portal.vll.operations.order_progress import _BATCH, attempt_record, attempts_forget
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
OLD = NOW - timedelta(days=200)
BEFORE = NOW - timedelta(days=90)


def attempt(
    isp: Isp, *ends: dict[str, Any], at: datetime = OLD, error: str | None = None, router: str = "rhino"
) -> int:
    """Store an attempt with Rhino's answer for these ends, or the reason for none; return the row's id."""
    answer = {"ends": list(ends), "unchanged": 0, "quarantined": [], "applied": True}
    attempt_record(
        router=isp.routers[router],
        generation=Attempt.objects.count() + 1,
        intent_sha256="",
        content_sha256=str(Attempt.objects.count()),
        outcome=Attempt.Outcome.ANSWERED if error is None else Attempt.Outcome.UNREACHABLE,
        answer=answer if error is None else {"error": error},
        started_at=at,
        now=at,
    )
    newest = Attempt.objects.order_by("-pk")[0]
    return int(newest.pk)


def said(vll: Vll, status: str = "verified", *, side: str = "a", revision: int = 1) -> dict[str, Any]:
    return {"vll": str(vll.pk), "end": side, "revision": revision, "status": status}


def left() -> list[int]:
    return sorted(Attempt.objects.values_list("pk", flat=True))


@pytest.fixture
def settled(isp: Isp, alice: User) -> Vll:
    """Return a line with an order that was completed long ago."""
    vll = order(isp, alice, now=OLD - timedelta(days=1)).vll
    activate(vll)
    return vll


def test_old_attempts_without_ends_are_deleted_and_the_newest_stays(isp: Isp) -> None:
    attempt(isp, error="timeout")
    attempt(isp)
    recent = attempt(isp, at=BEFORE + timedelta(seconds=1))
    assert attempts_forget(before=BEFORE) == 2
    assert left() == [recent]
    assert attempts_forget(before=NOW + timedelta(days=1)) == 0


def test_last_answer_per_end_and_revision_stays(isp: Isp, settled: Vll) -> None:
    attempt(isp, said(settled, "pending"))
    verified = attempt(isp, said(settled))
    changed = attempt(isp, said(settled, "verified", revision=2))
    other_end = attempt(isp, said(settled, "conflict", side="z"))
    attempt(isp, error="timeout")
    newest = attempt(isp, at=NOW)
    assert attempts_forget(before=BEFORE) == 2
    assert left() == [verified, changed, other_end, newest]
    assert attempts_forget(before=BEFORE) == 0


def test_answer_of_another_router_is_no_later_answer(isp: Isp, settled: Vll) -> None:
    here = attempt(isp, said(settled))
    attempt(isp, said(settled), router="hippo")
    attempt(isp, at=NOW)
    attempts_forget(before=BEFORE)
    assert here in left()


def test_attempts_of_an_open_order_stay_and_earlier_ones_are_deleted(isp: Isp, alice: User) -> None:
    attempt(isp, error="timeout", at=OLD - timedelta(days=2))
    vll = order(isp, alice, now=OLD - timedelta(days=1)).vll
    during = [
        attempt(isp, error="refused"),
        attempt(isp, said(vll, "pending")),
        attempt(isp, said(vll, "failed")),
    ]
    newest = attempt(isp, at=NOW)
    elsewhere = [attempt(isp, error="timeout", router="zebra"), attempt(isp, router="zebra")]
    assert attempts_forget(before=BEFORE) == 2
    assert left() == [*during, newest, elsewhere[1]]
    activate(vll)
    attempts_forget(before=BEFORE)
    assert left() == [during[2], newest, elsewhere[1]]


def test_repeated_attempt_with_one_result_is_not_old(isp: Isp) -> None:
    same: dict[str, Any] = {
        "router": isp.routers["rhino"],
        "generation": 1,
        "intent_sha256": "",
        "content_sha256": "",
        "outcome": Attempt.Outcome.UNREACHABLE,
        "answer": {"error": "timeout"},
        "started_at": OLD,
    }
    assert [attempt_record(**same, now=now) for now in (OLD, NOW)] == [1, 2]
    attempt(isp, at=NOW)
    assert attempts_forget(before=BEFORE) == 0


def test_only_the_task_deletes_and_only_old_attempts(isp: Isp, settled: Vll) -> None:
    old, last_word = attempt(isp), attempt(isp, said(settled))
    recent, newest = attempt(isp, at=NOW), attempt(isp, at=NOW)

    def refused(pk: int) -> bool:
        try:
            with transaction.atomic():
                Attempt.objects.filter(pk=pk).delete()
        except IntegrityError:
            return True
        return False

    assert all(map(refused, (old, last_word, recent, newest)))
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('longline.attempts_before', %s, true)", [BEFORE.isoformat()])
    assert [refused(pk) for pk in (last_word, recent, newest, old)] == [True, True, True, False]


def test_many_attempts_are_deleted_in_batches(isp: Isp) -> None:
    Attempt.objects.bulk_create(
        Attempt(
            router=isp.routers["rhino"],
            generation=number,
            started_at=OLD,
            finished_at=OLD,
            outcome="unreachable",
            answer={"error": "timeout"},
        )
        for number in range(2 * _BATCH + 5)
    )
    assert attempts_forget(before=BEFORE) == 2 * _BATCH + 4
    assert Attempt.objects.count() == 1


def test_hourly_task_deletes_by_the_setting(isp: Isp, settings: Any) -> None:
    settings.LONGLINE_ATTEMPT_DAYS = 30
    now = clock.now()
    attempt(isp, error="timeout", at=now - timedelta(days=31))
    kept = [attempt(isp, error="timeout", at=now - timedelta(days=29)), attempt(isp, at=now)]
    keep_partitions()
    assert left() == kept
