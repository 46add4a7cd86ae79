"""The record of a router's last counter report: its clock, and its newest samples and marks."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

from portal.core.unix_time import to_ms, to_time
from portal.inventory.models import Router
from portal.telemetry.reported_counters import CounterReport, CounterSample
from portal.telemetry.rollup_tables import FIVE_MINUTES

_READ = """
SELECT boot_id::text, newest_seq, marked_at, marked_ends
FROM telemetry_agentclock WHERE router_id = %s FOR NO KEY UPDATE
"""
_WRITE = """
INSERT INTO telemetry_agentclock (router_id, boot_id, offset_ms, measured_at, dropped, newest_seq, marked_at,
                                  marked_ends)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (router_id) DO UPDATE
SET boot_id = EXCLUDED.boot_id, offset_ms = EXCLUDED.offset_ms, measured_at = EXCLUDED.measured_at,
    dropped = EXCLUDED.dropped, newest_seq = EXCLUDED.newest_seq, marked_at = EXCLUDED.marked_at,
    marked_ends = EXCLUDED.marked_ends
"""
_STEP = timedelta(seconds=FIVE_MINUTES.step_s)


class Marks(NamedTuple):
    """These 5 minutes are marked as stale (portal.telemetry.rollups) for all ends of a digest."""

    at: datetime | None
    ends: str

    def exist(self, now: datetime) -> bool:
        """Return whether the marks still exist.

        The roll-up takes marks of 5 minutes that ended REPORTING_DELAY ago. The clocks of the portal's
        machines differ by less.
        """
        return self.at is not None and now < self.at + _STEP


NO_MARKS = Marks(None, "")


class LastCounters(NamedTuple):
    """Data of the last report: its ``boot_id``, the highest number of its samples, and its marks."""

    boot_id: str
    newest_seq: int | None
    marks: Marks

    def are_before(self, report: CounterReport) -> bool:
        """Return whether these samples must be new, because agents number their samples."""
        newest = self.newest_seq
        return (
            newest is not None
            and self.boot_id == report.boot_id
            and all(sample.seq > newest for sample in report.samples)
        )


def marks_of(samples: Iterable[CounterSample], ends: str) -> Marks:
    """Return the marks of these samples, if all are within the same 5 minutes. ``ends``: their ends,
    as text.
    """
    step_ms = FIVE_MINUTES.step_s * 1_000
    touched = {at for sample in samples for at in (sample.from_ms // step_ms, (sample.to_ms - 1) // step_ms)}
    if len(touched) != 1:
        return NO_MARKS
    return Marks(to_time(touched.pop() * step_ms), blake2b(ends.encode(), digest_size=16).hexdigest())


def clock_read(cursor: Any, router: Router) -> None:
    """Select the row and lock it: reports of a router are stored one after the other."""
    cursor.execute(_READ, [router.pk])


def clock_found(cursor: Any) -> LastCounters | None:
    """Return the selected clock; None before the router's first report."""
    row = cursor.fetchone()
    return None if row is None else LastCounters(row[0], row[1], Marks(*row[2:]))


def clock_write(
    cursor: Any,
    *,
    router: Router,
    report: CounterReport,
    last: LastCounters | None,
    marks: Marks = NO_MARKS,
    now: datetime,
) -> None:
    """Store the offset of the agent's clock, and the data for comparison with the next report."""
    numbers = [sample.seq for sample in report.samples]
    if last is not None and last.boot_id == report.boot_id and last.newest_seq is not None:
        numbers.append(last.newest_seq)
    newest = max(numbers, default=None)
    offset_ms = to_ms(now) - report.sent_ms
    cursor.execute(
        _WRITE, [router.pk, report.boot_id, offset_ms, now, report.dropped, newest, marks.at, marks.ends]
    )
