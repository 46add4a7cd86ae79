"""The record of a router's last counter report: clocks, highest sample number, and last marks."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from msgspec.json import Decoder, encode

from portal.core.clock import to_ms, to_time
from portal.inventory.models import Router
from portal.telemetry.reported_counters import CounterReport, CounterSample
from portal.telemetry.rollup_tables import FIVE_MINUTES
from portal.telemetry.sample_times import BootClock, offset_ms

_READ = """
SELECT boot_id::text, newest_seq, marked_at, marked_ends, boot_clocks::text
FROM telemetry_agentclock WHERE router_id = %s FOR NO KEY UPDATE
"""
_WRITE = """
INSERT INTO telemetry_agentclock (router_id, boot_id, offset_ms, sample_offset_ms, measured_at, dropped,
                                  newest_seq, marked_at, marked_ends, boot_clocks)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (router_id) DO UPDATE
SET boot_id = EXCLUDED.boot_id, offset_ms = EXCLUDED.offset_ms, sample_offset_ms = EXCLUDED.sample_offset_ms,
    measured_at = EXCLUDED.measured_at, dropped = EXCLUDED.dropped, newest_seq = EXCLUDED.newest_seq,
    marked_at = EXCLUDED.marked_at, marked_ends = EXCLUDED.marked_ends, boot_clocks = EXCLUDED.boot_clocks
"""
_CLOCKS = Decoder(list[BootClock])
_STEP = timedelta(seconds=FIVE_MINUTES.step_s)


class Marks(NamedTuple):
    """The record that one 5-minute bucket of a set of ends is marked as stale (portal.telemetry.rollups).

    ``at``: the start of the bucket. ``ends``: a digest of the ends.
    """

    at: datetime | None
    ends: str

    def exist(self, now: datetime) -> bool:
        """Return whether the marks certainly still exist. They do until their bucket ends.

        A roll-up removes a mark only if the bucket ended at least REPORTING_DELAY ago. The clocks of the
        portal's machines differ by less than REPORTING_DELAY.
        """
        return self.at is not None and now < self.at + _STEP


NO_MARKS = Marks(None, "")


class LastCounters(NamedTuple):
    """Data of a router's last report.

    ``newest_seq``: the highest number of all samples received with this ``boot_id``; None if unknown.
    """

    boot_id: str
    newest_seq: int | None
    marks: Marks
    clocks: Sequence[BootClock]

    def are_before(self, report: CounterReport) -> bool:
        """Return whether all samples of ``report`` are new.

        Each run of an agent numbers its samples, so a sample with a higher number than ``newest_seq`` is new.
        """
        newest = self.newest_seq
        return (
            newest is not None
            and self.boot_id == report.boot_id
            and all(sample.seq > newest for sample in report.samples)
        )


def marks_of(samples: Iterable[CounterSample], ends: str) -> Marks:
    """Return the marks of these samples if all samples are in the same 5-minute bucket; otherwise NO_MARKS.

    ``ends``: the ends of the samples, as text.
    """
    step_ms = FIVE_MINUTES.step_s * 1_000
    touched = {at for sample in samples for at in (sample.from_ms // step_ms, (sample.to_ms - 1) // step_ms)}
    if len(touched) != 1:
        return NO_MARKS
    return Marks(to_time(touched.pop() * step_ms), blake2b(ends.encode(), digest_size=16).hexdigest())


def clock_read(cursor: Any, router: Router) -> None:
    """Select and lock the router's AgentClock, so that its reports are stored one after the other."""
    cursor.execute(_READ, [router.pk])


def clock_found(cursor: Any) -> LastCounters | None:
    """Return the data in the row that ``clock_read`` selected; None before the router's first report."""
    row = cursor.fetchone()
    return None if row is None else LastCounters(row[0], row[1], Marks(*row[2:4]), _CLOCKS.decode(row[4]))


def clock_write(
    cursor: Any,
    *,
    router: Router,
    report: CounterReport,
    last: LastCounters | None,
    clocks: Sequence[BootClock],
    marks: Marks = NO_MARKS,
    now: datetime,
) -> None:
    """Store the offsets of the router's clocks, and the data for comparison with the next report."""
    numbers = [sample.seq for sample in report.samples]
    if last is not None and last.boot_id == report.boot_id and last.newest_seq is not None:
        numbers.append(last.newest_seq)
    newest = max(numbers, default=None)
    offsets_ms = to_ms(now) - report.sent_ms, offset_ms(report, clocks, now)
    rest = (now, report.dropped, newest, *marks, encode(clocks).decode())
    cursor.execute(_WRITE, [router.pk, report.boot_id, *offsets_ms, *rest])
