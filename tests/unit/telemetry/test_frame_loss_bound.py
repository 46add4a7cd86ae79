"""The bound of passive frame loss: differences that the reading times can explain never count as loss."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.telemetry.line_losses import EndCount, compare
from portal.telemetry.time_spans import ServiceTime
from portal.web.page.units import lost

_EPOCH = datetime(2026, 3, 1, tzinfo=UTC)
_START = int(_EPOCH.timestamp())
_STEP_S, _BUCKETS = 300, 3
_SPAN_MS = _STEP_S * _BUCKETS * 1000

# Frames by their time of passing (ms): steady traffic with bursts of any size at any time.
_bursts = st.lists(
    st.tuples(st.integers(-60_000, _SPAN_MS + 60_000), st.integers(1, 100_000)), min_size=1, max_size=40
)
_gaps = st.lists(st.integers(4_000, 35_000), min_size=1, max_size=8)


def end(bursts: list[tuple[int, int]], readings: list[int], start_ms: int) -> dict[str, Any]:
    """Return the bucket of an end that was read at these times."""
    frames, most = 0.0, 0
    for begin, until in pairwise(readings):
        overlap = min(until, start_ms + _STEP_S * 1000) - max(begin, start_ms)
        if overlap > 0:
            counted = sum(size for at, size in bursts if begin < at <= until)
            frames += counted * overlap / (until - begin)
            most = max(most, counted)
    return {"frames": frames, "most": most}


def compared(
    bursts: list[tuple[int, int]],
    a: list[int],
    z: list[int],
    *,
    without: int | None = None,
    apart_ms: int = 0,
) -> dict[str, Any]:
    """Compare A to Z without any loss; ``without`` omits one bucket, ``behind`` delays Z's clock."""
    later = [(at - apart_ms, size) for at, size in bursts]
    rows = {}
    for n in range(_BUCKETS):
        sent, came = (end(each, at, n * _STEP_S * 1000) for each, at in ((bursts, a), (later, z)))
        whole = _STEP_S * 1000
        row = (
            EndCount(sent["frames"], 0.0, None, whole, None, sent["most"], None),
            EndCount(0.0, came["frames"], None, whole, None, None, came["most"]),
        )
        if n != without:
            rows[_START + n * _STEP_S] = row
    until = _EPOCH + timedelta(seconds=_STEP_S * _BUCKETS)
    found: dict[str, Any] = compare(
        ServiceTime(None, None), rows, _EPOCH, until, _STEP_S, until, apart_ms / 1000
    )["a_to_z"]
    return found


def readings(first: int, gaps: list[int]) -> list[int]:
    """Return reading times with these repeated gaps, from a minute before the span to a minute after it."""
    at = [-60_000 - first]
    while at[-1] < _SPAN_MS + 60_000:
        at.append(at[-1] + gaps[len(at) % len(gaps)])
    return at


@settings(deadline=None)
@given(_bursts, _gaps, _gaps, st.sampled_from([None, 1]))
def test_reading_times_cause_no_loss(
    bursts: list[tuple[int, int]], a: list[int], z: list[int], without: int | None
) -> None:
    found = compared(bursts, readings(0, a), readings(0, z), without=without)
    if found["loss_ratio"] is not None:
        assert found["loss_ratio"] <= found["bound_ratio"] + 1e-9


@settings(deadline=None)
@given(_bursts, st.integers(0, 9_999), st.integers(0, 9_999), st.integers(0, 60_000))
def test_clock_differences_are_no_loss(bursts: list[tuple[int, int]], a: int, z: int, apart_ms: int) -> None:
    found = compared(bursts, readings(a, [10_000]), readings(z, [10_000]), apart_ms=apart_ms)
    if found["loss_ratio"] is not None:
        assert found["loss_ratio"] <= found["bound_ratio"] + 1e-9


def test_the_bound_of_steady_traffic_is_one_interval_at_each_end_of_the_range() -> None:
    steady = [(at, 100) for at in range(-60_000, _SPAN_MS + 60_000, 100)]
    found = compared(steady, readings(0, [10_000]), readings(4000, [10_000]))
    assert found["bound_ratio"] == pytest.approx(2 * 10 / 900, rel=0.01)


def test_without_a_stored_maximum_the_longest_interval_counts() -> None:
    end_count = EndCount(300.0, 300.0, None, _STEP_S * 1000, None, None, None)
    until = _EPOCH + timedelta(seconds=_STEP_S)
    found = compare(
        ServiceTime(None, None), {_START: (end_count, end_count)}, _EPOCH, until, _STEP_S, until, 0.0
    )
    assert found["a_to_z"]["bound_ratio"] == pytest.approx(2 * 35 / 300)


@pytest.mark.parametrize(
    ("loss", "bound", "shown"),
    [
        (None, None, "not measured"),
        (0.0, 0.000_231_4, "< 0.024 %"),
        (0.000_01, 0.000_231_4, "< 0.024 %"),
        (0.05, 0.000_231_4, "5 %"),
        (0.012_341, 0.000_231_4, "1.3 %"),
        (0.0, 0.0000001, "< 0.001 %"),
        (0.0, 0.234, "< 24 %"),
        (1.0, 0.5, "100 %"),
        (0.0, 0.0, "0 %"),
    ],
)
def test_the_text_promises_no_smaller_bound(loss: float | None, bound: float | None, shown: str) -> None:
    assert lost({"loss_ratio": loss, "bound_ratio": bound}) == shown
