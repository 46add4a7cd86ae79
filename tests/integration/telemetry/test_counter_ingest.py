"""Counter ingest: the portal stores each sample once, sets impossible ones aside, and drops whole days."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.core import clock
from portal.telemetry.counter_ingest import Stored, counters_store
from portal.telemetry.models import AgentClock, Sample
from portal.telemetry.partitioned_tables import DAYS_AHEAD, partitions_ensure, partitions_keep
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import order

pytestmark = pytest.mark.django_db
BOOT = UUID("d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10")


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    return order(isp, alice).vll


def ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def sample(
    vll: Vll, to: datetime, *, seq: int = 1, seconds: float = 10, side: str = "a", **counts: int
) -> CounterSample:
    """Return a sample of one end over the seconds before ``to``."""
    numbers = {"in_bytes": 100, "in_packets": 1, "out_bytes": 200, "out_packets": 2} | counts
    end = EndCount(vll=str(vll.pk), side=side, **numbers)
    return CounterSample(seq=seq, from_ms=ms(to) - int(seconds * 1000), to_ms=ms(to), ends=(end,))


def store(isp: Isp, now: datetime, *samples: CounterSample, boot: UUID = BOOT, dropped: int = 0) -> Stored:
    report = CounterReport(
        boot_id=str(boot), sent_ms=ms(now), simulated=False, dropped=dropped, samples=samples
    )
    return counters_store(router=isp.routers["rhino"], report=report, now=now)


def test_repeated_report_changes_nothing(isp: Isp, vll: Vll, now: datetime) -> None:
    first, second = sample(vll, now, seq=2), sample(vll, now - timedelta(seconds=10), seq=1)
    assert store(isp, now, first) == Stored(accepted=1, duplicate=0, refused=0, rejected=0)
    assert store(isp, now, first, second) == Stored(accepted=1, duplicate=1, refused=0, rejected=0)
    assert Sample.objects.count() == 2


def test_new_run_of_the_agent_starts_new_counts(isp: Isp, vll: Vll, now: datetime) -> None:
    store(isp, now, sample(vll, now))
    assert store(isp, now, sample(vll, now), boot=uuid4()).accepted == 1


@pytest.mark.parametrize(
    ("ahead_s", "accepted"), [(-10, 1), (59, 1), (60, 1), (61, 0), (10**6, 0), (10**12, 0)]
)
def test_sample_without_uptime_more_than_a_minute_ahead_is_refused(
    isp: Isp, vll: Vll, now: datetime, ahead_s: int, accepted: int
) -> None:
    end = sample(vll, now).ends
    to_ms = ms(now) + ahead_s * 1000
    stored = store(isp, now, CounterSample(seq=1, from_ms=to_ms - 10_000, to_ms=to_ms, ends=end))
    assert (stored.accepted, stored.refused) == (accepted, 1 - accepted)
    assert Sample.objects.count() == accepted


@pytest.mark.parametrize(
    ("seconds", "counts"),
    [
        (0, {}),
        (-10, {}),
        (3601, {}),
        (10, {"out_packets": -1}),
        (10, {"in_bytes": -(2**63)}),
    ],
)
def test_inconsistent_sample_is_refused(
    isp: Isp, vll: Vll, now: datetime, seconds: float, counts: dict[str, int]
) -> None:
    assert store(isp, now, sample(vll, now, seconds=seconds, **counts)).refused == 1
    assert Sample.objects.count() == 0


def test_sample_older_than_the_retention_is_refused(isp: Isp, vll: Vll, now: datetime) -> None:
    assert store(isp, now, sample(vll, now - timedelta(days=3))).refused == 1
    assert store(isp, now, sample(vll, datetime(1970, 1, 1, 0, 0, 11, tzinfo=UTC), seq=2)).refused == 1
    assert store(isp, now, sample(vll, now - timedelta(days=1), seq=3)).accepted == 1


def test_one_invalid_end_does_not_affect_the_others(isp: Isp, vll: Vll, now: datetime) -> None:
    good, bad = sample(vll, now), sample(vll, now, in_bytes=-1)
    stored = store(isp, now, CounterSample(good.seq, good.from_ms, good.to_ms, (*bad.ends, *good.ends)))
    assert (stored.accepted, stored.refused) == (1, 1)


def test_ends_of_other_routers_and_unknown_vlls_are_ignored(isp: Isp, vll: Vll, now: datetime) -> None:
    stranger = CounterSample(1, ms(now) - 1000, ms(now), (EndCount(str(uuid4()), "a", 1, 1, 1, 1),))
    assert store(isp, now, sample(vll, now, side="z"), stranger) == Stored(0, 0, 0, rejected=2)


def test_clock_offset_is_stored(isp: Isp, vll: Vll, now: datetime) -> None:
    report = CounterReport(str(BOOT), sent_ms=ms(now) + 2500, simulated=False, dropped=7, samples=())
    counters_store(router=isp.routers["rhino"], report=report, now=now)
    known = AgentClock.objects.get(router=isp.routers["rhino"])
    assert (known.offset_ms, known.dropped, known.boot_id) == (-2500, 7, BOOT)


def partitions() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'telemetry_sample'::regclass"
        )
        return {name for (name,) in cursor.fetchall()}


def test_partitions_are_created_ahead_and_old_ones_dropped(now: datetime) -> None:
    old = (now - timedelta(days=50)).date()
    partitions_ensure([old])
    assert f"telemetry_sample_{old:%Y%m%d}" in partitions()
    partitions_keep(now=now)
    partitions_keep(now=now)
    ahead = {
        f"telemetry_sample_{now.astimezone(UTC).date() + timedelta(days=d):%Y%m%d}"
        for d in range(DAYS_AHEAD + 1)
    }
    assert ahead <= partitions()
    assert f"telemetry_sample_{old:%Y%m%d}" not in partitions()


def test_readable_day_is_kept(isp: Isp, vll: Vll, now: datetime) -> None:
    store(isp, now, sample(vll, now - timedelta(days=1)))
    partitions_keep(now=now)
    assert Sample.objects.count() == 1
