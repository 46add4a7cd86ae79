"""Routers with wrong clocks: figures are right, nothing counts twice, and an alarm reports the clock."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.alarms.models import Alarm
from portal.core import clock
from portal.core.clock import to_ms
from portal.events.models import Event
from portal.telemetry.buckets import buckets_of
from portal.telemetry.counter_ingest import Stored, counters_store
from portal.telemetry.line_losses import frame_loss
from portal.telemetry.models import AgentClock, OperInterval, Sample
from portal.telemetry.reported_counters import (
    CounterReport,
    CounterSample,
    EndCount,
    InterfaceCount,
)
from portal.telemetry.rollups import roll_up
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.raised_alarms import alarm_texts, alarms_raised
from tests.integration.telemetry.test_counter_ingest import BOOT
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
KERNEL, EARLIER_KERNEL = "6a9f10d3-4c5a-4f53-8d2d-61b60d3e6b6a", "0b0f3c1a-4c5a-4f53-8d2d-61b60d3e6b6a"
# The start of a 5-minute bucket. The routers' uptime is then a day.
BEGIN = datetime(2026, 11, 22, 12, tzinfo=UTC)
DAY_MS = 86_400_000
STEP = timedelta(minutes=5)
TWO_HOURS = timedelta(hours=2)


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    vll, since = order(isp, alice).vll, BEGIN - timedelta(days=7)
    Vll.objects.filter(pk=vll.pk).update(created_at=since)
    OperInterval.objects.create(vll_id=vll.pk, status="op-up", began_at=since)
    vll.refresh_from_db()
    return vll


def sample(
    vll: Vll, number: int, *, side: str = "a", wall: timedelta = timedelta(), **more: Any
) -> CounterSample:
    """Return the sample that starts 10 s * ``number`` after BEGIN. The wall clock is ``wall`` ahead."""
    from_ms, uptime_ms = to_ms(BEGIN + wall) + 10_000 * number, DAY_MS + 10_000 * number
    end = EndCount(str(vll.pk), side, 1000, 10, 1000, 10)
    return CounterSample(
        number,
        from_ms,
        from_ms + 10_000,
        (end,),
        from_uptime_ms=uptime_ms,
        to_uptime_ms=uptime_ms + 10_000,
        **more,
    )


def send(
    isp: Isp,
    samples: Sequence[CounterSample],
    second: float,
    *,
    router: str = "rhino",
    wall: timedelta = timedelta(),
    kernel: str | None = KERNEL,
    restarted: bool = False,
) -> Stored:
    """Store a report that arrives ``second`` seconds after BEGIN. The wall clock is ``wall`` ahead."""
    now = BEGIN + timedelta(seconds=second)
    report = CounterReport(
        str(BOOT),
        to_ms(now + wall),
        False,
        0,
        tuple(samples),
        kernel,
        None if restarted or kernel is None else DAY_MS + int(second * 1000),
    )
    return counters_store(router=isp.routers[router], report=report, now=now)


def bytes_in(vll: Vll, side: str = "a") -> dict[int, int]:
    """Return the bytes into an end by 5-minute bucket, counted from BEGIN."""
    roll_up(now=BEGIN + timedelta(hours=6))
    found = buckets_of(vll, BEGIN - timedelta(hours=12), BEGIN + timedelta(hours=12), 300)[0][side]
    begin = int(BEGIN.timestamp())
    return {(start - begin) // 300: round(bucket.into / 8) for start, bucket in found.items()}


def without_uptimes(found: CounterSample) -> CounterSample:
    """Return the sample as an agent of release 0.1.0 reports it."""
    return CounterSample(found.seq, found.from_ms, found.to_ms, found.ends)


@pytest.mark.parametrize("wall", [TWO_HOURS, -TWO_HOURS, timedelta(days=-9000)])
def test_a_wall_clock_that_is_hours_wrong_gives_correct_figures(isp: Isp, vll: Vll, wall: timedelta) -> None:
    for number in range(90):
        stored = send(isp, [sample(vll, number, wall=wall)], 10 * number + 10, wall=wall)
        send(isp, [sample(vll, number, side="z")], 10 * number + 10, router="hippo")
        assert stored == Stored(accepted=1, duplicate=0, refused=0, rejected=0)
    assert bytes_in(vll) == {0: 30_000, 1: 30_000, 2: 30_000}
    loss = frame_loss(vll=vll, since=BEGIN, until=BEGIN + 3 * STEP, now=BEGIN + 4 * STEP)
    assert (loss["compared"], loss["a_to_z"]["loss_ratio"]) == (3, 0)
    assert loss["a_to_z"]["bound_ratio"] < 0.03, "the clock makes the bound no larger"


def test_a_backlog_has_correct_times_although_the_clock_was_set_while_it_waited(isp: Isp, vll: Vll) -> None:
    send(isp, [sample(vll, 0)], 10)
    ahead = [sample(vll, number, wall=TWO_HOURS) for number in range(1, 30)]
    right = [sample(vll, number) for number in range(30, 60)]
    assert send(isp, [*ahead, *right], 3600).accepted == 59
    assert bytes_in(vll) == {0: 30_000, 1: 30_000}


def test_a_repeated_report_counts_once_although_the_clock_was_set_in_between(isp: Isp, vll: Vll) -> None:
    samples = [sample(vll, number, wall=TWO_HOURS) for number in (0, 1)]
    assert send(isp, samples, 20, wall=TWO_HOURS).accepted == 2
    for second, wall in ((21.5, TWO_HOURS), (30, timedelta()), (40, -TWO_HOURS)):
        assert send(isp, samples, second, wall=wall) == Stored(0, 2, 0, 0)
    assert bytes_in(vll) == {0: 2000}


def test_reports_may_arrive_in_any_order(isp: Isp, vll: Vll) -> None:
    for number in (5, 1, 3, 2):
        assert send(isp, [sample(vll, number, wall=TWO_HOURS)], 60 + number, wall=TWO_HOURS).accepted == 1
    assert bytes_in(vll) == {0: 4000}


def test_losses_have_the_same_times_as_the_ends(isp: Isp, vll: Vll) -> None:
    interface = InterfaceCount("host-bb0", 100, 100, 1, 0, 0, 0, 0)
    found = sample(vll, 0, wall=TWO_HOURS, interfaces=(interface,))
    for second in (10, 11):
        send(isp, [found], second, wall=TWO_HOURS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_at FROM telemetry_loss_sample")
        assert cursor.fetchall() == [(BEGIN + timedelta(seconds=10),)]


class TestAfterARestart:
    def test_samples_of_a_known_run_keep_their_correct_times(self, isp: Isp, vll: Vll, nora: User) -> None:
        send(isp, [sample(vll, 0, wall=TWO_HOURS)], 10, wall=TWO_HOURS, kernel=EARLIER_KERNEL)
        late = [sample(vll, number, wall=TWO_HOURS) for number in (0, 1, 2)]
        stored = send(isp, late, 300, wall=TWO_HOURS, kernel=EARLIER_KERNEL, restarted=True)
        assert (stored.accepted, stored.duplicate) == (2, 1)
        assert bytes_in(vll) == {0: 3000}
        assert not Event.objects.filter(kind="router.samples_by_own_clock").exists()

    def test_samples_of_an_unknown_run_keep_their_wall_clock_times_and_are_marked(
        self, isp: Isp, vll: Vll, nora: User
    ) -> None:
        late = [sample(vll, number, wall=-TWO_HOURS) for number in (0, 1, 2)]
        for part in (late[:2], late[1:]):
            send(isp, part, 300, kernel=EARLIER_KERNEL, restarted=True)
        assert bytes_in(vll) == {-24: 3000}
        assert Event.objects.filter(kind="router.samples_by_own_clock").count() == 1
        router = isp.routers["rhino"]
        shown = text(signed_in(nora).get(f"/noc/routers/{router.pk}/"))
        assert "Samples from before a restart have the times of the router's own clock" in shown

    def test_the_new_run_is_placed_by_its_own_uptime(self, isp: Isp, vll: Vll) -> None:
        send(isp, [sample(vll, 0)], 10, kernel=EARLIER_KERNEL)
        send(isp, [sample(vll, 31, wall=TWO_HOURS)], 320, wall=TWO_HOURS)
        assert bytes_in(vll) == {0: 1000, 1: 1000}


class TestAgentsOfRelease010:
    def test_samples_have_the_times_of_the_wall_clock(self, isp: Isp, vll: Vll) -> None:
        found = without_uptimes(sample(vll, 0))
        for second, accepted in ((10, 1), (11, 0)):
            assert send(isp, [found], second, kernel=None).accepted == accepted
        assert bytes_in(vll) == {0: 1000}

    def test_samples_from_the_future_are_refused_and_later_ones_are_stored(self, isp: Isp, vll: Vll) -> None:
        ahead = without_uptimes(sample(vll, 0, wall=TWO_HOURS))
        assert send(isp, [ahead], 10, wall=TWO_HOURS, kernel=None) == Stored(0, 0, 1, 0)
        assert send(isp, [without_uptimes(sample(vll, 1))], 20, kernel=None).accepted == 1
        assert bytes_in(vll) == {0: 1000}

    def test_an_upgraded_agent_continues_where_it_was(self, isp: Isp, vll: Vll) -> None:
        send(isp, [without_uptimes(sample(vll, 0))], 10, kernel=None)
        send(isp, [without_uptimes(sample(vll, 1))], 21, kernel=None)
        assert send(isp, [sample(vll, 2, wall=TWO_HOURS)], 30, wall=TWO_HOURS).accepted == 1
        assert bytes_in(vll) == {0: 3000}


def test_a_restored_database_continues_with_its_own_clocks(isp: Isp, vll: Vll) -> None:
    send(isp, [sample(vll, 0, wall=TWO_HOURS)], 10, wall=TWO_HOURS)
    backup = AgentClock.objects.get()
    send(isp, [sample(vll, 1)], 20)
    Sample.objects.filter(seq=1).delete()
    backup.save()
    samples = [sample(vll, number, wall=TWO_HOURS) for number in (0, 1, 2)]
    stored = send(isp, samples, 30, wall=TWO_HOURS)
    assert (stored.accepted, stored.duplicate) == (2, 1)
    assert bytes_in(vll) == {0: 3000}


def test_a_wrong_clock_is_an_alarm_until_it_is_right(isp: Isp, vll: Vll, nora: User) -> None:
    router, now = isp.routers["rhino"], clock.now()
    for ahead_s, notes in ((7200, ["rhino: 2 h ahead"]), (-95, ["rhino: 1 min 40 s behind"]), (60, [])):
        report = CounterReport(str(BOOT), to_ms(now) + 1000 * ahead_s, False, 0, ())
        counters_store(router=router, report=report, now=now)
        assert alarm_texts(Kind.CLOCK_WRONG, now) == notes
    assert alarm_texts(Kind.CLOCK_WRONG, now + timedelta(minutes=6)) == []


def test_an_alarm_of_release_0_1_0_about_samples_is_cleared(isp: Isp, nora: User) -> None:
    facts = {
        "samples": 7,
        "lines": 1,
        "offset_ms": -7_200_000,
        "month": "2026-11",
        "reason": "from_the_future",
    }
    old = Alarm.objects.create(
        kind="quarantine", object="quarantine:5", name="rhino", facts=facts, severity=3, raised_at=clock.now()
    )
    browser: Client = signed_in(nora)
    shown = text(browser.get(f"/noc/alarms/{old.pk}/"))
    assert "The clock of rhino is wrong" in shown
    assert "2 h ahead" in shown
    assert alarms_raised(Kind.CLOCK_WRONG) == []
