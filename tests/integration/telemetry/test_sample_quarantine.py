"""Samples of a wrong clock are kept until somebody decides, added once, and never replace counted samples."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Sum

from portal.accounts.models import User
from portal.core import clock
from portal.events.models import Event, Outbox
from portal.telemetry import sample_quarantine as setting_aside
from portal.telemetry.bucket_queries import buckets_of
from portal.telemetry.counter_ingest import Stored, counters_store
from portal.telemetry.line_frame_loss import frame_loss
from portal.telemetry.models import (
    MonthlyPercentile,
    OperInterval,
    Quarantine,
    QuarantinedFiveMinutes,
    QuarantinedSample,
)
from portal.telemetry.month_close import frozen_percentiles, months_freeze
from portal.telemetry.partitions import partitions_ensure, partitions_keep
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount, PolicerCount
from portal.telemetry.rollup_tables import FIVE_MINUTES
from portal.telemetry.rollups import roll_up
from portal.telemetry.sample_quarantine_accept import accepted_count
from portal.telemetry.sample_quarantine_decisions import (
    COUNT_ACCEPTED,
    DecidedOtherwise,
    TimeUnknown,
    quarantine_accept,
    quarantine_discard,
    quarantines_expire,
)
from portal.telemetry.sample_quarantine_preview import month_previews
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.telemetry.test_counter_ingest import BOOT, ms

pytestmark = pytest.mark.django_db
MARCH, APRIL = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
MARCH_IS_OVER = APRIL + timedelta(days=2, hours=1)
AHEAD = timedelta(hours=2)
STEP = timedelta(minutes=5)
# The correct time of the first count in most tests.
BEGIN = MARCH + timedelta(days=9, hours=6)


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return a line that is in service for all of March."""
    vll, since = order(isp, alice).vll, MARCH - timedelta(days=60)
    Vll.objects.filter(pk=vll.pk).update(created_at=since)
    OperInterval.objects.create(vll_id=vll.pk, status="op-up", began_at=since)
    vll.refresh_from_db()
    return vll


def send(
    isp: Isp,
    vll: Vll,
    begin: datetime,
    *,
    duration_s: int = 10,
    seq: int = 1,
    side: str = "a",
    ahead: timedelta = AHEAD,
    sent_ahead: timedelta | None = None,
    waited: timedelta = timedelta(),
    every_s: int = 10,
    boot: Any = BOOT,
    **counts: Any,
) -> Stored:
    """Store a router's counts from ``begin`` on, in samples of ``every_s``, in one report sent afterwards.

    The router's clock was ``ahead`` at the count, and ``sent_ahead`` when the report was sent.
    """
    numbers = {"in_bytes": 1000, "in_packets": 10, "out_bytes": 500, "out_packets": 5} | counts
    samples = tuple(
        CounterSample(
            seq + number,
            ms(begin + ahead) + 1000 * at,
            ms(begin + ahead) + 1000 * min(at + every_s, duration_s),
            (EndCount(str(vll.pk), side, **numbers),),
        )
        for number, at in enumerate(range(0, duration_s, every_s))
    )
    now = begin + timedelta(seconds=duration_s) + waited
    sent = now + (ahead if sent_ahead is None else sent_ahead)
    router = isp.routers["rhino" if side == "a" else "hippo"]
    return counters_store(
        router=router, report=CounterReport(str(boot), ms(sent), False, 0, samples), now=now
    )


def accept(user: User, now: datetime) -> None:
    for quarantine in Quarantine.objects.filter(state="undecided", month__isnull=False).order_by("pk"):
        quarantine_accept(quarantine=quarantine, user=user, now=now)
    accepted_count(now=now)


def stored(vll: Vll, start: datetime, *columns: str, table: str = "telemetry_five_minutes") -> Any:
    query = f"SELECT {', '.join(columns)} FROM {table} WHERE vll_id = %s AND start_at = %s"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(query, [vll.pk, start])
        return cursor.fetchone()


def counted(vll: Vll, side: str = "a") -> dict[datetime, tuple[float, float]]:
    """Return bytes in and covered seconds for each 5 minutes of March."""
    found = buckets_of(vll, MARCH, APRIL, 300)[0][side]
    return {
        datetime.fromtimestamp(start, tz=UTC): (round(bucket.into / 8, 6), bucket.covered_s)
        for start, bucket in found.items()
    }


def test_samples_of_a_clock_that_is_ahead_are_kept_until_a_decision(isp: Isp, vll: Vll) -> None:
    assert send(isp, vll, BEGIN, duration_s=600).quarantined == 60
    partitions_keep(now=BEGIN + timedelta(days=20))
    quarantines_expire(now=BEGIN + timedelta(days=20))
    (kept,) = Quarantine.objects.all()
    assert (kept.samples, kept.month, kept.offset_ms) == (60, MARCH.date(), -7_200_000)
    assert (kept.reason, kept.first_ms, kept.waited) == ("from_the_future", ms(BEGIN + AHEAD), 29)
    rows = kept.five_minutes.order_by("start_at").values_list("start_at", "covered_ms", "in_bytes")
    assert list(rows) == [(BEGIN, 300_000, 30_000), (BEGIN + STEP, 300_000, 30_000)]
    assert counted(vll) == {}


def test_samples_accepted_early_count_once_in_every_table(isp: Isp, vll: Vll, nora: User) -> None:
    send(isp, vll, BEGIN, duration_s=600)
    now = BEGIN + timedelta(minutes=20)
    accept(nora, now)
    expected = {BEGIN: (30_000, 300), BEGIN + STEP: (30_000, 300)}
    assert counted(vll) == expected
    roll_up(now=now + timedelta(days=1))
    assert counted(vll) == expected
    assert stored(vll, BEGIN, "a_in_bytes", "a_covered_ms", table="telemetry_hour") == (60_000, 600_000)
    for quarantine in Quarantine.objects.all():
        quarantine_accept(quarantine=quarantine, user=nora, now=now)
    assert accepted_count(now=now) == 0
    assert counted(vll) == expected
    (message,) = Outbox.objects.filter(task=COUNT_ACCEPTED)
    assert message.args == []


def test_samples_accepted_after_the_retention_are_added_once(isp: Isp, vll: Vll, nora: User) -> None:
    send(isp, vll, BEGIN, duration_s=300)
    send(isp, vll, BEGIN, duration_s=300, side="z", ahead=timedelta())
    roll_up(now=BEGIN + timedelta(days=1))
    late = BEGIN + timedelta(days=15)
    partitions_keep(now=late)
    before = stored(vll, BEGIN, "z_in_bytes", "z_covered_ms")
    accept(nora, late)
    accepted_count(now=late)
    roll_up(now=late)
    assert counted(vll) == {BEGIN: (30_000, 300)}
    assert stored(vll, BEGIN, "z_in_bytes", "z_covered_ms") == before == (30_000, 300_000)
    assert stored(vll, BEGIN, "a_in_bytes", "z_in_bytes", table="telemetry_day") is None
    day = stored(vll, BEGIN.replace(hour=0), "a_in_bytes", "z_in_bytes", table="telemetry_day")
    assert day == (30_000, 30_000)
    assert not QuarantinedFiveMinutes.objects.exists()


def test_late_samples_of_the_far_end_do_not_remove_accepted_ones(isp: Isp, vll: Vll, nora: User) -> None:
    send(isp, vll, BEGIN, duration_s=300)
    accept(nora, BEGIN + STEP)
    roll_up(now=BEGIN + timedelta(hours=1))
    send(isp, vll, BEGIN, duration_s=300, side="z", ahead=timedelta(), waited=timedelta(days=1))
    roll_up(now=BEGIN + timedelta(days=1, hours=1))
    assert stored(vll, BEGIN, "a_covered_ms", "z_covered_ms") == (300_000, 300_000)
    # The portal deletes rows that are permanently in a rollup because no sample counts them again.
    quarantines_expire(now=BEGIN + timedelta(days=2))
    assert QuarantinedFiveMinutes.objects.count() == 1
    quarantines_expire(now=BEGIN + timedelta(days=4))
    assert not QuarantinedFiveMinutes.objects.exists()
    assert counted(vll) == {BEGIN: (30_000, 300)}


def test_clock_corrected_in_between_gives_buckets_that_do_not_overlap(isp: Isp, vll: Vll, nora: User) -> None:
    send(isp, vll, BEGIN, duration_s=400, seq=1)
    send(isp, vll, BEGIN + timedelta(seconds=400), duration_s=200, seq=41, ahead=timedelta())
    roll_up(now=BEGIN + timedelta(hours=1))
    assert counted(vll) == {BEGIN + STEP: (20_000, 200)}
    accept(nora, BEGIN + timedelta(hours=1))
    assert counted(vll) == {BEGIN: (30_000, 300), BEGIN + STEP: (30_000, 300)}


def test_quarantined_samples_are_left_out_where_the_end_is_already_counted(
    isp: Isp, vll: Vll, nora: User
) -> None:
    send(isp, vll, BEGIN, duration_s=200, seq=1, ahead=timedelta())
    send(isp, vll, BEGIN, duration_s=300, boot=uuid4())
    accept(nora, BEGIN + timedelta(hours=1))
    assert counted(vll) == {BEGIN: (20_000, 200)}
    (end,) = Quarantine.objects.get().ends.all()
    assert (end.added, end.left_out) == (0, 1)


@pytest.mark.parametrize("later", [timedelta(), timedelta(seconds=40), timedelta(hours=3), timedelta(days=3)])
def test_repeated_sample_is_a_duplicate_after_any_delay(
    isp: Isp, vll: Vll, nora: User, later: timedelta
) -> None:
    first = send(isp, vll, BEGIN, ahead=timedelta(seconds=90))
    assert (first.accepted, first.quarantined) == (0, 1)
    accept(nora, BEGIN + timedelta(minutes=6))
    again = send(isp, vll, BEGIN, ahead=timedelta(seconds=90), waited=later)
    assert (again.accepted, again.quarantined, again.duplicate) == (0, 0, 1)
    assert Quarantine.objects.aggregate(Sum("samples"))["samples__sum"] == 1
    assert counted(vll) == {BEGIN: (1000, 10)}


def test_counted_sample_that_arrives_again_days_later_is_not_added(isp: Isp, vll: Vll, nora: User) -> None:
    send(isp, vll, BEGIN, duration_s=50, ahead=timedelta())
    roll_up(now=BEGIN + timedelta(hours=1))
    late = send(isp, vll, BEGIN, duration_s=50, ahead=timedelta(), waited=timedelta(days=5))
    assert late.quarantined == 5
    accept(nora, BEGIN + timedelta(days=5))
    assert counted(vll) == {BEGIN: (5000, 50)}
    assert Quarantine.objects.get().ends.get().left_out == 1


def test_samples_that_an_agent_kept_for_days_can_be_accepted_where_nothing_is_counted(
    isp: Isp, vll: Vll, nora: User
) -> None:
    # An error of less than a minute is not corrected.
    send(isp, vll, BEGIN, duration_s=300, ahead=timedelta(seconds=1), waited=timedelta(days=5))
    assert Quarantine.objects.get().offset_ms == 0
    accept(nora, BEGIN + timedelta(days=5))
    assert sum(into for into, _ in counted(vll).values()) == 30_000


@pytest.mark.parametrize(
    "fault",
    [
        # The clock was set before the sending; before and after it; while the counts were made.
        {"sent_ahead": timedelta()},
        {"ahead": timedelta(hours=2), "sent_ahead": timedelta(hours=1)},
        {
            "ahead": timedelta(minutes=-5),
            "duration_s": 600,
            "every_s": 600,
            "sent_ahead": timedelta(minutes=5),
        },
        {"in_bytes": -1},
        {"duration_s": 7200, "every_s": 7200},
    ],
)
def test_samples_without_a_time_keep_examples_and_can_only_be_discarded(
    isp: Isp, vll: Vll, nora: User, fault: dict[str, Any]
) -> None:
    if "every_s" in fault and fault["duration_s"] == 600:
        end = EndCount(str(vll.pk), "a", 1, 1, 1, 1)
        sample = CounterSample(1, ms(BEGIN), ms(BEGIN + timedelta(minutes=20)), (end,))
        report = CounterReport(str(BOOT), ms(BEGIN + timedelta(minutes=20)), False, 0, (sample,))
        counters_store(router=isp.routers["rhino"], report=report, now=BEGIN + timedelta(seconds=10))
    else:
        assert send(isp, vll, BEGIN, **fault).quarantined == 1
    (kept,) = Quarantine.objects.all()
    assert (kept.month, kept.samples, kept.examples.count()) == (None, 1, 1)
    assert kept.examples.get().sample["sent_ms"]
    with pytest.raises(TimeUnknown):
        quarantine_accept(quarantine=kept, user=nora, now=BEGIN + AHEAD)
    quarantine_discard(quarantine=kept, user=nora, reason="Our test.", now=BEGIN + AHEAD)
    assert QuarantinedSample.objects.count() == 0
    kept.refresh_from_db()
    assert (kept.state, kept.decided_by, kept.why) == ("discarded", nora, "Our test.")


def test_contradictory_end_does_not_affect_the_other_ends_of_its_sample(isp: Isp, vll: Vll) -> None:
    to = ms(BEGIN + AHEAD)
    ends = (EndCount(str(vll.pk), "a", 1, 1, 1, 1), EndCount(str(vll.pk), "a", -1, 1, 1, 1))
    report = CounterReport(str(BOOT), to, False, 0, (CounterSample(1, to - 10_000, to, ends),))
    assert counters_store(router=isp.routers["rhino"], report=report, now=BEGIN).quarantined == 2
    found = Quarantine.objects.order_by("reason").values_list("reason", "samples", "month")
    assert list(found) == [("from_the_future", 1, MARCH.date()), ("negative", 1, None)]


def test_decision_is_final(isp: Isp, vll: Vll, nora: User) -> None:
    send(isp, vll, BEGIN)
    kept, now = Quarantine.objects.get(), BEGIN + timedelta(days=1)
    for _ in range(2):
        quarantine_discard(quarantine=kept, user=nora, reason="Lab traffic.", now=now)
    with pytest.raises(DecidedOtherwise):
        quarantine_accept(quarantine=kept, user=nora, now=now)
    (event,) = Event.objects.filter(kind="router.samples_discarded")
    assert (event.actor, event.data["reason"], event.data["month"]) == ("nora", "Lab traffic.", "2026-03")
    # Later samples wait for a separate decision.
    send(isp, vll, BEGIN + STEP, seq=9)
    assert list(Quarantine.objects.order_by("pk").values_list("state", flat=True)) == [
        "discarded",
        "undecided",
    ]


def test_drifting_clock_makes_few_quarantines_and_a_jumping_clock_a_limited_number(
    isp: Isp, vll: Vll, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        send(isp, vll, BEGIN + number * STEP, seq=number, ahead=AHEAD + number * timedelta(seconds=4))
    assert Quarantine.objects.count() == 2
    monkeypatch.setattr(setting_aside, "MOST_UNDECIDED", 3)
    for number in range(6, 12):
        send(isp, vll, BEGIN + number * STEP, seq=number, ahead=AHEAD * number)
    assert Quarantine.objects.count() == 4
    (rest,) = Quarantine.objects.filter(reason="unsteady_clock")
    assert (rest.month, rest.samples) == (None, 5)


def test_undecided_quarantine_expires_with_an_event(isp: Isp, vll: Vll, settings: Any) -> None:
    send(isp, vll, BEGIN)
    send(isp, vll, BEGIN, seq=7, in_bytes=-1)
    over = APRIL + timedelta(days=settings.LONGLINE_QUARANTINE_DAYS)
    assert quarantines_expire(now=BEGIN + timedelta(days=settings.LONGLINE_QUARANTINE_DAYS + 1)) == 1
    assert quarantines_expire(now=over - timedelta(seconds=1)) == 0
    assert quarantines_expire(now=over) == 1
    kept = Quarantine.objects.get(month=MARCH.date())
    assert (kept.state, kept.samples, kept.decided_at, kept.decided_by) == ("expired", 1, over, None)
    assert Event.objects.filter(kind="router.samples_expired").count() == 2
    assert not QuarantinedFiveMinutes.objects.exists()


def five_minutes(vll: Vll, first: int, last: int) -> None:
    """Store rolled-up 5 minutes of March: the n-th counts n bit/s in at end A."""
    partitions_ensure((MARCH.date() + timedelta(days=day) for day in range(31)), FIVE_MINUTES)
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO telemetry_five_minutes (vll_id, start_at, a_in_bytes, a_in_packets, a_out_bytes,
                   a_out_packets, a_covered_ms, z_covered_ms, simulated)
               SELECT %s, %s + (n - 1) * interval '5 minutes', n * 37.5, 1, 37.5, 1, 300000, 0, false
               FROM generate_series(%s::int, %s::int) AS n""",
            [vll.pk, MARCH, first, last],
        )


def test_frozen_month_shows_undecided_samples_and_is_corrected_with_an_event(
    isp: Isp, vll: Vll, nora: User, alice: User
) -> None:
    five_minutes(vll, 101, 8928)
    # The first 100 of March, each with 100,000 bit/s.
    for part in range(10):
        begin = MARCH + part * timedelta(seconds=3000)
        send(isp, vll, begin, duration_s=3000, every_s=300, seq=10 * part, in_bytes=3_750_000, out_bytes=0)
    months_freeze(now=MARCH_IS_OVER)
    # Readers see the undecided samples, and the 5 minutes are kept while a decision is possible.
    (month,) = frozen_percentiles(vll_id=vll.pk)
    assert (month["a_end"], month["earlier"]) == (
        {"in": 8487, "out": 1, "max": 8487, "counted": 8828, "missing": 100, "undecided": 100},
        [],
    )
    late = APRIL + timedelta(days=30)
    partitions_keep(now=late)
    kept = Quarantine.objects.get()
    (preview,) = month_previews(quarantine=kept, vlls=[vll], now=late)
    assert preview.before
    assert preview.after
    assert (preview.before.p95["a"]["in"], preview.after.p95["a"]["in"]) == (8487, 8582)
    assert (preview.before.p95["a"]["counted"], preview.after.p95["a"]["counted"]) == (8828, 8928)
    assert (preview.added, preview.left_out) == ({"a": 100}, {"a": 0})
    accept(nora, late)
    (month,) = frozen_percentiles(vll_id=vll.pk)
    assert month["a_end"] == {
        "in": 8582,
        "out": 1,
        "max": 8582,
        "counted": 8928,
        "missing": 0,
        "undecided": 0,
    }
    (earlier,) = month["earlier"]  # type: ignore[misc]
    assert (earlier["a_end"]["in"], earlier["frozen_at"], earlier["corrected_at"]) == (  # type: ignore[index]
        8487,
        MARCH_IS_OVER,
        late,
    )
    assert [event.data for event in Event.objects.filter(kind="vll.month_corrected", vll_id=vll.pk)] == [
        {"month": "2026-03"}
    ]
    accepted_count(now=late)
    months_freeze(now=late)
    assert MonthlyPercentile.objects.count() == 4
    assert client(alice).get(f"/api/v1/vlls/{vll.pk}/percentiles").json()["results"][0]["a_end"]["in"] == 8582
    # Now the 5 minutes may be deleted.
    partitions_keep(now=late)
    assert min(counted(vll)) >= late - FIVE_MINUTES.retention


def test_acceptance_changes_only_its_own_month(isp: Isp, vll: Vll, nora: User) -> None:
    # At the end of March: a sample that ends in April counts completely in April.
    send(isp, vll, APRIL - timedelta(seconds=25), duration_s=50, every_s=10)
    months = dict(Quarantine.objects.values_list("month", "samples"))
    assert months == {MARCH.date(): 2, APRIL.date(): 3}
    starts = QuarantinedFiveMinutes.objects.values_list("quarantine__month", "start_at", "in_bytes")
    assert set(starts) == {(MARCH.date(), APRIL - STEP, 2000), (APRIL.date(), APRIL, 3000)}


def test_loss_is_compared_where_both_ends_are_complete_again(isp: Isp, vll: Vll, nora: User) -> None:
    policed = PolicerCount(*([1000, 8, 0, 0, 200, 2]))
    send(isp, vll, BEGIN, duration_s=600, policer=policed)
    send(isp, vll, BEGIN, duration_s=600, side="z", ahead=timedelta(), out_packets=8)
    now = BEGIN + timedelta(hours=1)
    values = {"vll": vll, "since": BEGIN, "until": BEGIN + 2 * STEP}
    assert frame_loss(**values, now=now)["compared"] == 0
    (preview,) = month_previews(quarantine=Quarantine.objects.get(), vlls=[vll], now=now)
    accept(nora, now)
    found = frame_loss(**values, now=now)
    assert (found["compared"], found["a_to_z"]) == (
        2,
        {"sent": 600, "policed": 120, "delivered": 480, "loss_ratio": 0.0, "bound_ratio": 1.0},
    )
    assert preview.after
    assert preview.after.loss["compared"] == 2
    assert preview.after.loss["a_to_z"] == found["a_to_z"]


def test_undecided_5_minutes_are_on_the_months_page_and_in_the_csv(isp: Isp, alice: User, nora: User) -> None:
    line, now = order(isp, alice).vll, clock.now()
    OperInterval.objects.create(vll_id=line.pk, status="op-up", began_at=now - timedelta(days=1))
    begin = datetime.fromtimestamp(now.timestamp() // 300 * 300, tz=UTC)
    send(isp, line, begin)
    api = client(alice)
    text = b"".join(api.get(f"/api/v1/vlls/{line.pk}/months.csv")).decode()
    row = next(csv.DictReader(io.StringIO(text)))
    assert (row["a_undecided"], row["z_undecided"], row["p95_corrected_at"]) == ("1", "0", "")
