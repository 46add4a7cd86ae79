"""A sample keeps its time when clocks are set. A wrong clock of a router does not matter."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from portal.core.clock import to_ms
from portal.telemetry.reported_counters import CounterReport, CounterSample
from portal.telemetry.sample_times import BootClock, clocks_after, offset_ms, placed

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
RUN = "d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10"
BOOT, EARLIER_BOOT = "6a9f10d3-4c5a-4f53-8d2d-61b60d3e6b6a", "0b0f3c1a-4c5a-4f53-8d2d-61b60d3e6b6a"
HOUR_MS = 3_600_000


def report(
    *uptimes_s: float, boot: str = BOOT, sent_s: float | None, wall: float = 0, now: datetime = NOW
) -> CounterReport:
    """Return a report with 10-second samples that end at the uptimes. The wall clock is ``wall`` s ahead at
    sending, and all samples have the wall-clock time 1970.
    """
    samples = tuple(
        CounterSample(
            int(each), 0, 10_000, (), from_uptime_ms=int(each * 1000) - 10_000, to_uptime_ms=int(each * 1000)
        )
        for each in uptimes_s
    )
    sent_ms = max(0, to_ms(now) + int(wall * 1000))
    sent_uptime_ms = None if sent_s is None else int(sent_s * 1000)
    return CounterReport(RUN, sent_ms, False, 0, samples, boot, sent_uptime_ms)


def ages_s(
    clocks: list[BootClock], found: CounterReport, now: datetime = NOW
) -> tuple[list[BootClock], list[float]]:
    """Return the clocks after the report, and the ages of its samples."""
    after = clocks_after(clocks, found, now)
    return after, [(to_ms(now) - sample.to_ms) / 1000 for sample in placed(found, after)]


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_wall_clock_that_is_hours_wrong_does_not_matter() -> None:
    for wall in (-7200, 7200, -(10**9)):
        _clocks, ages = ages_s([], report(90, 100, sent_s=101, wall=wall))
        assert ages == [11, 1]


def test_samples_adjoin_exactly_while_reports_take_different_times_to_arrive() -> None:
    clocks, times = [], []
    for number, delay in enumerate((0.4, 0.1, 0.9, 0.2)):
        uptime, now = 100 + 10 * number, later(10 * number + delay)
        found = report(uptime, sent_s=uptime, wall=7200 - delay, now=now)
        clocks = clocks_after(clocks, found, now)
        times += placed(found, clocks)
    assert all(one.to_ms == next_one.from_ms for one, next_one in pairwise(times))


def test_a_synchronized_wall_clock_decides_and_not_the_time_of_arrival() -> None:
    _clocks, ages = ages_s([], report(100, sent_s=100, wall=-5), NOW)
    assert ages == [5]


def test_a_clock_that_is_set_right_decides_from_then_on() -> None:
    clocks, ages = ages_s([], report(100, sent_s=100, wall=-30))
    assert ages == [30]
    clocks, ages = ages_s(clocks, report(100, 110, sent_s=110, now=later(10)), later(10))
    assert ages == [40, 0], "the sample that was stored before keeps its time"


def test_a_clock_that_jumps_after_samples_were_taken_does_not_move_them() -> None:
    clocks, _ages = ages_s([], report(100, sent_s=100))
    for wall in (7200, -7200, 30):
        clocks, ages = ages_s(clocks, report(105, sent_s=110, wall=wall, now=later(10)), later(10))
        assert ages == [5]


def test_a_slow_clock_is_corrected_when_it_is_a_minute_wrong() -> None:
    clocks, _ages = ages_s([], report(100, sent_s=100))
    for number in range(1, 200):
        at = later(10 * number + number * 0.5)
        found = report(100 + 10 * number, sent_s=100 + 10 * number, wall=-number * 0.5, now=at)
        clocks, (age,) = ages_s(clocks, found, at)
        assert abs(age) <= 61
    assert len(clocks) == 2


def test_one_late_report_changes_nothing_and_a_second_one_does() -> None:
    clocks, _ages = ages_s([], report(100, sent_s=100, wall=-7200))
    late = report(110, sent_s=110, wall=-7200, now=later(110))
    clocks, ages = ages_s(clocks, late, later(110))
    assert ages == [100]
    clocks, ages = ages_s(clocks, report(120, sent_s=120, wall=-7200, now=later(20)), later(20))
    assert ages == [0]
    for seconds in (130, 140):
        clocks, ages = ages_s(
            clocks, report(seconds, sent_s=seconds, wall=-7200, now=later(seconds)), later(seconds)
        )
    assert ages == [0]


def test_reports_that_were_overtaken_by_newer_ones_change_nothing() -> None:
    clocks, _ages = ages_s([], report(200, sent_s=200, now=later(100)), later(100))
    for _again in range(3):
        overtaken = report(100, 110, sent_s=120, wall=7200, now=later(200))
        after, ages = ages_s(clocks, overtaken, later(200))
        assert (after, ages) == (clocks, [200, 190])


def test_a_first_report_that_was_late_is_corrected_by_the_next() -> None:
    clocks, ages = ages_s([], report(100, sent_s=100, wall=-7200, now=later(20)), later(20))
    assert ages == [0]
    clocks, ages = ages_s(clocks, report(110, sent_s=110, wall=-7200, now=later(10)), later(10))
    assert ages == [0]


def test_two_portal_machines_with_slightly_different_clocks_agree() -> None:
    clocks: list[BootClock] = []
    for number in range(100):
        at = later(10 * number + 3 * (number % 2))
        clocks, (age,) = ages_s(
            clocks, report(100 + 10 * number, sent_s=100 + 10 * number, wall=7200, now=at), at
        )
        assert 0 <= age <= 3
    assert len(clocks) <= 2


def test_samples_follow_the_portals_clock_when_it_is_set() -> None:
    clocks, _ages = ages_s([], report(100, sent_s=100))
    for uptime, ahead in ((110, 3600), (120, 3600), (130, 0), (140, 0)):
        at = later(uptime - 100 + ahead)
        clocks, ages = ages_s(clocks, report(uptime, sent_s=uptime, wall=-ahead, now=at), at)
    assert ages == [0]
    assert len(clocks) == 3


def test_samples_from_before_a_restart_get_the_times_of_that_run() -> None:
    clocks, _ages = ages_s([], report(100, boot=EARLIER_BOOT, sent_s=100, wall=7200))
    clocks, ages = ages_s(clocks, report(90, 110, boot=EARLIER_BOOT, sent_s=None, now=later(70)), later(70))
    assert ages == [80, 60]


def test_samples_of_a_run_that_sent_nothing_keep_their_wall_clock_times() -> None:
    found = report(90, 100, boot=EARLIER_BOOT, sent_s=None)
    clocks = clocks_after([], found, NOW)
    assert placed(found, clocks) == found.samples
    assert [each.zero_ms for each in clocks] == [None]
    assert clocks_after(clocks, found, NOW) == clocks
    clocks, ages = ages_s(clocks, report(20, sent_s=20, wall=7200))
    assert ages == [0]
    assert placed(found, clocks) == found.samples


def test_an_agent_of_release_0_1_0_has_only_its_wall_clock() -> None:
    sample = CounterSample(1, to_ms(NOW) - 10_000, to_ms(NOW), ())
    found = CounterReport(RUN, to_ms(NOW) + 5_000, False, 0, (sample,))
    assert clocks_after([], found, NOW) == []
    assert placed(found, []) == (sample,)
    assert offset_ms(found, [], NOW) == -5_000


def test_the_offset_is_that_of_the_samples_and_not_of_a_wrong_wall_clock() -> None:
    found = report(100, sent_s=100, wall=7200)
    assert offset_ms(found, clocks_after([], found, NOW), NOW) == 0
    nearly_right = report(100, sent_s=100, wall=20)
    assert offset_ms(nearly_right, clocks_after([], nearly_right, NOW), NOW) == -20_000


def test_clocks_are_kept_as_long_as_samples_are_accepted() -> None:
    clocks = clocks_after([], report(100, boot=EARLIER_BOOT, sent_s=100), NOW)
    assert len(clocks_after(clocks, report(10, sent_s=10), NOW + timedelta(days=2))) == 2
    assert len(clocks_after(clocks, report(10, sent_s=10), NOW + timedelta(days=2, seconds=1))) == 1


_STEP = st.tuples(
    st.integers(1, 600),  # seconds until the next report
    st.sampled_from([0, 0, 0, 0, 0.5, 5, 90]),  # seconds that the report takes
    st.sampled_from([0, 0, 0, 0, 0.4, 3, 40, 7200, -7200]),  # the router's clock is ahead (s)
    st.sampled_from([0, 0, 0, 0, 0, 0, 3, 3600]),  # the portal's clock is ahead (s)
    st.lists(st.integers(0, 30), max_size=3),  # earlier reports that are repeated
    st.sampled_from([False, False, False, False, False, True]),  # the router restarts first
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_STEP, min_size=1, max_size=15))
def test_a_repeated_sample_always_gets_the_same_time(
    steps: Sequence[tuple[int, float, float, float, list[int], bool]],
) -> None:
    clocks: list[BootClock] = []
    known: dict[tuple[str, int], int] = {}
    sent: list[tuple[str, float]] = []
    second, boots = 0.0, [0.0]

    def deliver(number: int, at: float, wall: float, ahead: float) -> None:
        """Send the sample that was taken at ``sent[number]``, maybe again."""
        boot, taken = sent[number]
        began = boots[int(boot[-2:])]
        is_running = began == boots[-1]
        now = later(at + ahead)
        found = report(
            taken - began, boot=boot, sent_s=second - began if is_running else None, wall=wall, now=now
        )
        nonlocal clocks
        clocks = clocks_after(clocks, found, now)
        (sample,) = placed(found, clocks)
        assert known.setdefault((boot, sample.seq), sample.to_ms) == sample.to_ms

    for pause, delay, wall, ahead, again, restarts in steps:
        second += pause
        if restarts:
            boots.append(second)
            second += 20
        sent.append((f"6a9f10d3-4c5a-4f53-8d2d-61b60d3e6b{len(boots) - 1:02d}", second))
        for number in (*again, -1):
            if number < len(sent):
                deliver(number, second + delay, wall, ahead)
