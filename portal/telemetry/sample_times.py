"""The times of samples by the portal's clock.

The wall clock of a router can be wrong, and somebody can set it (ADR 82). An agent therefore also reports the
uptime of the router: at the start and the end of each sample, and when it sends the report. The portal
computes the time of uptime 0, the *zero*, and adds the uptimes of the samples.

A sample that the agent sends again must get the same time, because the portal recognizes it by its time. The
portal therefore stores the zero. If a report shows that the zero is wrong, the portal also stores the correct
zero, which applies to later uptimes only.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from portal.core.clock import to_ms
from portal.telemetry.partitioned_tables import SAMPLES
from portal.telemetry.reported_counters import CounterReport, CounterSample, Integer

_MS = timedelta(milliseconds=1)
# If a clock differs from the portal's clock by more than this, it is wrong.
MAX_OFFSET = timedelta(seconds=60)
# If the router's clock differs from the portal's clock by at most this, the portal uses it again. Reports may
# take this long to arrive.
_EXACT_MS = 1_000
# The limit matters only if a clock keeps jumping.
_MOST_CLOCKS = 20


class BootClock(Struct, frozen=True):
    """The zero of a run of the router's kernel (``kernel_boot_id``), for uptimes from ``since_ms`` on.

    ``zero_ms``: the time of uptime 0 (ms since the epoch); None if the router was restarted before the portal
    received a report. ``uptime_ms`` and ``received_ms``: the uptime in the last report, and its arrival.
    ``doubted``: whether the last report came much too late.
    """

    kernel_boot_id: str
    since_ms: Integer
    zero_ms: Integer | None
    uptime_ms: Integer
    received_ms: Integer
    doubted: bool = False


def clocks_after(clocks: Sequence[BootClock], report: CounterReport, now: datetime) -> list[BootClock]:
    """Return the clocks after a report, the newest run's last, without those older than all samples."""
    now_ms = to_ms(now)
    kept = [each for each in clocks if each.received_ms >= now_ms - SAMPLES.retention // _MS][-_MOST_CLOCKS:]
    kernel, uptime_ms = report.kernel_boot_id, report.sent_uptime_ms
    if kernel is None:
        return kept
    last = _of(report, kept)[-1:]
    if uptime_ms is None:
        return kept if last else [BootClock(kernel, 0, None, 0, now_ms), *kept]
    if not last:
        return [*kept, BootClock(kernel, 0, _zero_ms(report, uptime_ms, now_ms), uptime_ms, now_ms)]
    return [*(each for each in kept if each is not last[0]), *_corrected(last[0], report, uptime_ms, now_ms)]


def _corrected(last: BootClock, report: CounterReport, uptime_ms: int, now_ms: int) -> list[BootClock]:
    """Return the clock after a further report, and the next clock if the report shows a wrong zero."""
    if last.zero_ms is None or uptime_ms <= last.uptime_ms:
        return [last]
    late_ms = now_ms - uptime_ms - last.zero_ms
    is_late = late_ms > MAX_OFFSET // _MS
    better_ms = _zero_ms(report, uptime_ms, now_ms)
    is_exact = abs(now_ms - report.sent_ms) <= _EXACT_MS
    # A single late report may have waited somewhere. A report that is too early proves a wrong zero.
    if (is_late and last.doubted) or (
        abs(better_ms - last.zero_ms) > _EXACT_MS and (is_exact or late_ms < -_EXACT_MS)
    ):
        return [last, BootClock(last.kernel_boot_id, last.uptime_ms, better_ms, uptime_ms, now_ms)]
    return [replace(last, uptime_ms=uptime_ms, received_ms=now_ms, doubted=is_late)]


def _zero_ms(report: CounterReport, uptime_ms: int, now_ms: int) -> int:
    """Return the time of uptime 0 by the router's clock. If that clock is wrong, use the portal's clock.

    The router's clock is usually synchronized, and a report may take some time to arrive.
    """
    is_right = abs(now_ms - report.sent_ms) <= MAX_OFFSET // _MS
    return (report.sent_ms if is_right else now_ms) - uptime_ms


def placed(report: CounterReport, clocks: Sequence[BootClock]) -> tuple[CounterSample, ...]:
    """Return the samples of a report with their times by the portal's clock.

    Samples without uptimes, which an agent of release 0.1.0 has taken, keep the times of the router's wall
    clock. This also applies if the router was restarted before the portal received a report.
    """
    known = _of(report, clocks)
    return tuple(_placed(sample, known) for sample in report.samples)


def _of(report: CounterReport, clocks: Sequence[BootClock]) -> list[BootClock]:
    return [each for each in clocks if each.kernel_boot_id == report.kernel_boot_id]


def _placed(sample: CounterSample, clocks: Sequence[BootClock]) -> CounterSample:
    from_ms, to_ms = sample.from_uptime_ms, sample.to_uptime_ms
    if not clocks or from_ms is None or to_ms is None:
        return sample
    zero_ms = next((each for each in reversed(clocks) if each.since_ms < to_ms), clocks[0]).zero_ms
    return sample if zero_ms is None else replace(sample, from_ms=zero_ms + from_ms, to_ms=zero_ms + to_ms)


def offset_ms(report: CounterReport, clocks: Sequence[BootClock], now: datetime) -> int:
    """Return the difference (ms) between the portal's clock and the times of the report's samples."""
    known = _of(report, clocks)
    if report.sent_uptime_ms is None or not known or known[-1].zero_ms is None:
        return to_ms(now) - report.sent_ms
    return to_ms(now) - report.sent_uptime_ms - known[-1].zero_ms
