"""The arithmetic of silences: no time is lost or counted twice, and observed states remain."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.telemetry.partitioned_tables import FIVE_MINUTES
from portal.telemetry.router_silences import BUCKET, Interval, down_in, rewritten, spoken_for, verdicts_on
from portal.telemetry.time_spans import Span, length, merged, within, without
from portal.vll.states import OperStatus

# These tests measure no time: a busy machine must not fail them.
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ZERO = datetime(2026, 11, 10, tzinfo=UTC)
TEN = timedelta(minutes=10)


def at(minute: float) -> datetime:
    return ZERO + timedelta(minutes=minute)


def span(begin: float, end: float) -> Span:
    return at(begin), at(end)


minutes = st.integers(0, 240)
spans = st.lists(st.tuples(minutes, minutes).map(lambda pair: span(*pair)), max_size=6).map(merged)
five_minutes = st.sets(st.integers(0, 48).map(lambda n: span(5 * n, 5 * n + 5)))
silences = st.tuples(st.integers(0, 120), st.integers(1, 120)).map(lambda two: span(two[0], sum(two)))


@st.composite
def histories(draw: st.DrawFn) -> list[Interval]:
    """Draw a line's intervals from the first minute on, the last of them open."""
    cuts = sorted(draw(st.sets(st.integers(1, 239), max_size=8)))
    edges = [0, *cuts]
    each = st.sampled_from(list(OperStatus))
    return [
        Interval(draw(each), at(begin), None if end is None else at(end))
        for begin, end in zip(edges, [*cuts, None], strict=True)
    ]


@calmly
@given(spans, silences)
def test_inside_and_outside_make_the_whole(some: list[Span], whole: Span) -> None:
    inside, outside = within([whole], some), without(whole, some)
    assert length(inside) + length(outside) == length([whole])
    assert within(inside, outside) == []


@calmly
@given(silences, five_minutes, spans, spans)
def test_a_verdict_covers_each_moment_of_the_silence_once(
    silence: Span, spoken: set[Span], down: list[Span], forwarded: list[Span]
) -> None:
    verdicts = verdicts_on(silence, forwarded=forwarded, down=down)
    assert merged((begin, end) for begin, end, _ in verdicts) == [silence]
    assert all(one[1] == next_[0] for one, next_ in pairwise(verdicts))
    up = merged((begin, end) for begin, end, status in verdicts if status == OperStatus.UP)
    assert up == within([silence], forwarded)


@calmly
@given(silences, five_minutes, spans)
def test_only_time_with_a_listener_and_without_samples_is_down(
    silence: Span, spoken: set[Span], listened: list[Span]
) -> None:
    speaks = spoken_for(silence, spoken, over=True)
    down = down_in(silence, speaks, listened=listened, longest=TEN)
    assert within(down, [silence]) == down
    assert within(down, speaks) == []
    assert within(down, listened) == down
    assert not down or length(down) > TEN


@calmly
@given(histories(), silences, spans, spans)
def test_rewriting_keeps_all_time_and_is_idempotent(
    history: list[Interval], silence: Span, down: list[Span], forwarded: list[Span]
) -> None:
    verdicts = verdicts_on(silence, forwarded=forwarded, down=down)
    after = rewritten(history, verdicts)
    assert (after[0].began, after[-1].ended) == (history[0].began, None)
    assert all(one.ended == next_.began for one, next_ in pairwise(after))
    assert rewritten(after, verdicts) == after

    def spans_of(intervals: list[Interval], status: str) -> list[Span]:
        return merged((i.began, i.ended or at(999)) for i in intervals if i.status == status and not i.judged)

    # Observed outages, and all states outside of the silence, are unchanged.
    assert spans_of(after, OperStatus.DOWN) == spans_of(history, OperStatus.DOWN)
    for status in OperStatus:
        now = merged((i.began, i.ended or at(999)) for i in after if i.status == status)
        for outside in without((at(0), at(999)), [silence]):
            assert within(now, [outside]) == within(spans_of(history, status), [outside])


@calmly
@given(histories(), silences, spans, spans)
def test_late_counters_take_an_outage_back(
    history: list[Interval], silence: Span, down: list[Span], forwarded: list[Span]
) -> None:
    first = rewritten(history, verdicts_on(silence, forwarded=[], down=down))
    later = rewritten(first, verdicts_on(silence, forwarded=forwarded, down=[]))
    assert not [i for i in later if i.judged and i.status == OperStatus.DOWN]


@pytest.mark.parametrize(
    ("spoken", "over", "expected"),
    [
        pytest.param([], True, [], id="nothing speaks"),
        pytest.param([5], True, [span(2, 10)], id="the first whole 5 minutes speak for what is before"),
        pytest.param([50], True, [span(50, 58)], id="the last whole 5 minutes speak for what is after"),
        pytest.param([0, 55], True, [], id="5 minutes that reach out of the silence say nothing of it"),
        pytest.param([5, 10, 30], True, [span(2, 15), span(30, 35)], id="those in between for themselves"),
        pytest.param([50, 55], False, [span(50, 58)], id="a continuing silence counts until now"),
    ],
)
def test_complete_buckets_of_5_minutes_count(spoken: list[int], over: bool, expected: list[Span]) -> None:
    five_minutes = [span(minute, minute + 5) for minute in spoken]
    assert spoken_for(span(2, 58), five_minutes, over=over) == expected


@pytest.mark.parametrize(
    ("speaks", "listened", "expected"),
    [
        pytest.param([], [span(0, 60)], [span(2, 58)], id="nothing speaks, back to the last report"),
        pytest.param([span(2, 50)], [span(0, 60)], [], id="not longer than the setting"),
        pytest.param([span(2, 40)], [span(0, 60)], [span(40, 58)], id="back to the last sample"),
        pytest.param([], [], [], id="nobody listened"),
        pytest.param([], [span(0, 9), span(50, 60)], [span(2, 9), span(50, 58)], id="the portal was away"),
        pytest.param([], [span(0, 9)], [], id="nobody listened for long enough"),
    ],
)
def test_what_counts_as_down(speaks: list[Span], listened: list[Span], expected: list[Span]) -> None:
    assert down_in(span(2, 58), speaks, listened=listened, longest=TEN) == expected


def test_a_bucket_is_what_telemetry_rolls_up() -> None:
    assert BUCKET.total_seconds() == FIVE_MINUTES.step_s
