"""The cost of judging a silence depends on new samples, and not on the length of the silence."""

from datetime import datetime, timedelta

import pytest
from django.db import connection

from portal.core.background_work import each_row
from portal.inventory.models import RouterSilence
from portal.telemetry import line_status_in_silence, router_silences
from portal.telemetry.line_status_in_silence import silence_judge
from portal.telemetry.models import UnjudgedFiveMinutes
from portal.telemetry.rollups import roll_up
from portal.telemetry.router_silences import silences_due
from tests.integration.telemetry.test_silent_routers import MINUTE, Network, mark_stale, network

__all__ = ["network"]
pytestmark = pytest.mark.django_db
_ROWS_READ = """
SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)
FROM pg_stat_xact_user_tables WHERE relname LIKE 'telemetry\\_five\\_minutes%%'
"""


def rows_read() -> int:
    """Return how many 5-minute rows this test's transaction has read so far."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS_READ)
        return int(cursor.fetchone()[0])


def forward_for(network: Network, hours: int) -> None:
    """Hippo is silent and forwards: rhino counts frames that leave at its end of the line."""
    begin = network.now
    network.hours_later(hours, "rhino")
    starts: list[datetime] = []
    while begin < network.now - 5 * MINUTE:
        starts.append(begin)
        begin += 5 * MINUTE
    network.count("rhino", *[(start, start + MINUTE) for start in starts], out=50)
    roll_up(now=network.now + 10 * MINUTE)
    network.advance(MINUTE, "rhino")


def test_judgement_reads_only_samples_since_the_last_one(network: Network) -> None:
    network.advance(11 * MINUTE, "rhino")
    costs = []
    for hours in (6, 1, 36, 1):
        forward_for(network, hours)
        network.advance(6 * MINUTE, "rhino", step=MINUTE)
        network.count("rhino", (network.now - 6 * MINUTE, network.now), out=50)
        roll_up(now=network.now + 10 * MINUTE)
        before = rows_read()
        mark_stale()
        costs.append(rows_read() - before)
    assert RouterSilence.objects.get().until is None
    # The second judgement of an hour is 36 hours later and reads no more than the first one.
    assert costs[3] <= costs[1]
    assert timedelta(hours=40) < network.now - RouterSilence.objects.get().since


def test_long_backlog_is_read_in_portions(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disconnected agent delivers eight hours of samples: no transaction reads all of them."""
    silent_since = network.now
    network.advance(11 * MINUTE, "rhino")
    network.hours_later(8, "rhino")
    assert network.status == "op-down"
    network.report("rhino", "hippo")
    network.count("hippo", (silent_since, network.now - MINUTE), out=20)
    roll_up(now=network.now + 10 * MINUTE)
    # Two lines end on the router: 16 times 5 minutes are a portion.
    monkeypatch.setattr(line_status_in_silence, "ROWS_TOGETHER", 32)
    (due,) = silences_due(now=network.now)
    portions, left = 0, UnjudgedFiveMinutes.objects.count()
    assert left > 90
    while silence_judge(silence_id=due, now=network.now):
        portions += 1
        before, left = left, UnjudgedFiveMinutes.objects.count()
        assert before - left == 16
        # The portal reads no row twice, and gives no verdict before it has read all rows.
        assert network.status == "op-up"
    assert portions >= 5
    assert silences_due(now=network.now) == []
    network.advance(MINUTE, "rhino", "hippo")
    times = network.times()
    assert (times["down_s"], times["unknown_s"]) == (0, 0)


def test_silence_that_cannot_begin_does_not_block_others(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, first = router_silences._begin, min(network.isp.routers[name].pk for name in ("rhino", "hippo"))

    def fail_for_the_first(router_id: int, heard: datetime, now: datetime) -> None:
        if router_id == first:
            raise ValueError("of this router alone")
        begin(router_id, heard, now)

    monkeypatch.setattr(router_silences, "_begin", fail_for_the_first)
    with pytest.raises(ExceptionGroup, match="failed for 1 of 2"):
        network.advance(MINUTE, step=MINUTE / 6)
    assert RouterSilence.objects.exclude(router=first).count() == 1
    monkeypatch.undo()
    monkeypatch.setattr("portal.core.clock.now", lambda: network.now)
    mark_stale()


def test_rows_after_a_failed_one_are_processed_and_the_error_is_raised() -> None:
    done: list[int] = []

    def half(number: int) -> int:
        done.append(10 // number)
        return number

    with pytest.raises(ExceptionGroup, match="halves failed for 1 of 3") as raised:
        each_row([1, 0, 5], half, what="halves")
    assert done == [10, 2]
    assert raised.group_contains(ZeroDivisionError)
    assert each_row([2, 5], half, what="halves") == [2, 5]
