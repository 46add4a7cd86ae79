"""Samples above the watermark are stored without a search for duplicates, and the sums stay the same."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.telemetry.counter_ingest import Stored, counters_store
from portal.telemetry.models import Sample
from portal.telemetry.partitioned_tables import partitions_ensure
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount
from portal.telemetry.rollups import roll_up
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.telemetry.test_counter_ingest import BOOT, partitions

pytestmark = pytest.mark.django_db
# The begin of a 5-minute bucket.
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def lines(isp: Isp, alice: User) -> list[Vll]:
    return [
        order(isp, alice, cir_bps=1, now=NOW, a_end=end(isp, "rhino:host-cust1", outer=vlan),
              z_end=end(isp, "hippo:host-cust1", outer=vlan)).vll
        for vlan in (1, 2)
    ]  # fmt: skip


def sample(seq: int, *vlls: Vll) -> CounterSample:
    """Return a sample of the 10 s before ``seq`` times 10 s after NOW, with 100 bytes at each A end."""
    to_ms = int(NOW.timestamp() * 1000) + seq * 10_000
    return CounterSample(
        seq, to_ms - 10_000, to_ms, tuple(EndCount(str(vll.pk), "a", 100, 1, 100, 1) for vll in vlls)
    )


def store(isp: Isp, *samples: CounterSample, second: int | None = None) -> Stored:
    """Store a report, now or at ``second`` after NOW."""
    now = datetime.fromtimestamp(samples[-1].to_ms / 1000, tz=UTC)
    if second is not None:
        now = NOW + timedelta(seconds=second)
    report = CounterReport(str(BOOT), int(now.timestamp() * 1000), False, 0, samples)
    return counters_store(router=isp.routers["rhino"], report=report, now=now)


def in_five_minutes(vll: Vll) -> list[int]:
    """Return the bytes into the A end after the roll-up."""
    roll_up(now=NOW + timedelta(hours=1))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT a_in_bytes FROM telemetry_five_minutes WHERE vll_id = %s ORDER BY start_at", [vll.pk]
        )
        return [int(counted) for (counted,) in cursor.fetchall()]


def test_marks_are_written_once_per_5_minutes_and_count_every_sample(isp: Isp, lines: list[Vll]) -> None:
    for seq in range(1, 62):
        with CaptureQueriesContext(connection) as captured:
            assert store(isp, sample(seq, *lines)) == Stored(2, 0, 0, 0)
        if 2 < seq % 30 < 30:
            assert not any("telemetry_stale_bucket" in each["sql"] for each in captured)
    assert in_five_minutes(lines[0]) == in_five_minutes(lines[1]) == [3000, 3000, 100]


def test_late_end_in_the_same_5_minutes_is_counted(isp: Isp, lines: list[Vll]) -> None:
    for seq in (1, 2, 3):
        store(isp, sample(seq, lines[0]))
    for seq in (4, 5, 6):
        store(isp, sample(seq, *lines))
    assert (in_five_minutes(lines[0]), in_five_minutes(lines[1])) == ([600], [300])


def test_sample_after_the_rollup_of_its_5_minutes_is_counted(isp: Isp, lines: list[Vll]) -> None:
    for seq in (1, 2, 3):
        store(isp, sample(seq, lines[0]))
    assert in_five_minutes(lines[0]) == [300]
    store(isp, sample(4, lines[0]), second=400)
    assert in_five_minutes(lines[0]) == [400]


@pytest.mark.parametrize("again", [[3], [1], [1, 2, 3], [2, 4], [4, 3]])
def test_repeated_sample_is_stored_once(isp: Isp, lines: list[Vll], again: list[int]) -> None:
    for seq in (1, 2, 3):
        store(isp, sample(seq, lines[0]))
    new = set(again) - {1, 2, 3}
    assert store(isp, *(sample(seq, lines[0]) for seq in again)) == Stored(
        len(new), len(again) - len(new), 0, 0
    )
    assert in_five_minutes(lines[0]) == [300 + 100 * len(new)]


def test_late_sample_with_a_lower_number_is_stored(isp: Isp, lines: list[Vll]) -> None:
    for seq in (1, 3, 2):
        assert store(isp, sample(seq, lines[0])).accepted == 1
    assert in_five_minutes(lines[0]) == [300]


def test_end_named_twice_in_a_sample_is_stored_once(isp: Isp, lines: list[Vll]) -> None:
    for seq in (1, 2):
        store(isp, sample(seq, lines[0], lines[0]))
    assert in_five_minutes(lines[0]) == [200]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("named", [1, 2])
def test_samples_refused_at_commit_are_stored_at_the_second_attempt(
    isp: Isp, lines: list[Vll], named: int
) -> None:
    """The statements are sent together with COMMIT, so errors arrive after the last statement."""
    partitions_ensure([NOW.date()])
    for seq in (1, 2, 3):
        assert store(isp, sample(seq, *lines[:1] * named)) == Stored(1, named - 1, 0, 0)
    assert not connection.in_atomic_block
    assert Sample.objects.filter(vll_id=lines[0].pk).count() == 3
    with connection.cursor() as cursor:
        (day,) = {name for name in partitions() if name.endswith(f"{NOW:%Y%m%d}")}
        cursor.execute(f"DROP TABLE {day}")
    assert store(isp, sample(4, lines[0])).accepted == 1
    assert Sample.objects.get(vll_id=lines[0].pk).seq == 4
