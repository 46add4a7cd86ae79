"""Storage of agents' counters. A repeated sample has no effect, and samples may arrive in any order.

Samples with impossible times or values are refused. The record of a router's last report has its clocks, its
highest sample number, and its last marks.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import IntegrityError, connection
from msgspec.json import Decoder, encode
from msgspec.structs import astuple
from psycopg.errors import CheckViolation, UniqueViolation

from portal.core.clock import to_ms, to_time
from portal.core.db.sessions import pipelined_transaction
from portal.events.announcements import announce
from portal.inventory.models import Router
from portal.telemetry.partitioned_tables import FIVE_MINUTES, LOSS_SAMPLES, SAMPLES, partitions_ensure
from portal.telemetry.reported_counters import (
    LONGEST_SAMPLE,
    CounterReport,
    CounterSample,
    EndCount,
    PolicerCount,
)
from portal.telemetry.rollups import lock_buckets
from portal.telemetry.router_losses import losses_insert
from portal.telemetry.sample_times import MAX_OFFSET, BootClock, clocks_after, offset_ms, placed
from portal.vll.models import EndMove

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
    """The mark of a 5-minute bucket, which starts ``at``, for a set of ends, with the digest ``ends``."""

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
    """A router's last report. ``newest_seq``: the highest number of this ``boot_id``, None if unknown."""

    boot_id: str
    newest_seq: int | None
    marks: Marks
    clocks: Sequence[BootClock]

    def are_before(self, report: CounterReport) -> bool:
        """Return whether all samples of ``report`` are new: each run of an agent numbers its samples."""
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


log = logging.getLogger(__name__)

PER_END = ("in_bytes", "in_packets", "out_bytes", "out_packets")
POLICER = PolicerCount.__struct_fields__
DROPS = ("in_drops", "out_drops")
COUNTS = (*PER_END, *POLICER, *DROPS)
_COUNTS = ", ".join(COUNTS)
_ARRAYS = ", ".join(["%s::bigint[]"] * len(COUNTS))
# Inserts the rows of any number of samples. Each row has its own sample number and times.
_ROWS = f"""
INSERT INTO telemetry_sample (vll_id, side, seq, from_at, to_at, {_COUNTS}, boot_id, router_id, simulated)
SELECT vll_id, side, seq, 'epoch'::timestamptz + from_ms * interval '1 millisecond',
       'epoch'::timestamptz + to_ms * interval '1 millisecond', {_COUNTS}, %s::uuid, %s, %s
FROM unnest(%s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], {_ARRAYS})
     AS reported (vll_id, side, seq, from_ms, to_ms, {_COUNTS})
"""  # noqa: S608 - constants
# Inserts the ends of a single new sample. All rows have the number and times of this sample.
_NEW_ROWS = f"""
INSERT INTO telemetry_sample (vll_id, side, {_COUNTS}, boot_id, router_id, simulated, seq, from_at, to_at)
SELECT reported.*, %s::uuid, %s, %s, %s, %s, %s
FROM unnest(%s::uuid[], %s::text[], {_ARRAYS}) AS reported
"""  # noqa: S608 - constants
_INSERT = f"""
WITH inserted AS ({_ROWS}
    ON CONFLICT DO NOTHING
    RETURNING vll_id, side, from_at, to_at
), marked AS (
    INSERT INTO telemetry_stale_bucket (vll_id, step_s, start_at, side)
    SELECT DISTINCT vll_id, 300, start_at, side
    FROM inserted, generate_series(date_bin('5 minutes', from_at, 'epoch'),
                                   to_at - interval '1 microsecond', '5 minutes') AS start_at
    ORDER BY vll_id, start_at, side
    ON CONFLICT ON CONSTRAINT a_bucket_is_marked_once DO NOTHING
)
SELECT count(*) FROM inserted
"""  # noqa: S608 - a constant
_ELSEWHERE = """
SELECT reported.vll_id::text, reported.side FROM unnest(%s::uuid[], %s::text[]) AS reported (vll_id, side)
WHERE (vll_id, side) NOT IN (
    SELECT vll_id, side FROM vll_vllend
    WHERE port_id = ANY(ARRAY(SELECT id FROM inventory_port WHERE router_id = %s)))
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of storing a report: numbers of ends, added up over the samples of the report.

    ``refused``: ends with an impossible time or a negative count. ``rejected``: ends that were not on this
    router at the time of the sample.
    """

    accepted: int
    duplicate: int
    refused: int
    rejected: int


_Row = tuple[CounterSample, EndCount]
# The reported ends that are not on the router: when each last left this router (ms since the epoch); 0 if
# never. The router may report them in samples that began earlier.
_Away = dict[tuple[str, str], int]


def counters_store(*, router: Router, report: CounterReport, now: datetime) -> Stored:
    """Store a router's samples. Each sample is stored once, however often it is sent."""
    try:
        return _store(router, report, now)
    except IntegrityError as error:
        if _lacks_partition(error):
            # Partitions for the next days always exist. A late sample may need an earlier one.
            for table in (SAMPLES, LOSS_SAMPLES):
                days_ago = range(-1, table.retention.days + 2)
                partitions_ensure([(now - timedelta(days=n)).astimezone(UTC).date() for n in days_ago], table)
        elif not isinstance(error.__cause__, UniqueViolation):
            raise
    return _store(router, report, now, by_number=False)


def _store(router: Router, report: CounterReport, now: datetime, *, by_number: bool = True) -> Stored:
    """Store the samples. ``by_number``: samples with higher numbers than all earlier ones are new."""
    with pipelined_transaction():
        last, away = _lock_and_read(router, report, now)
        clocks = _clocks(router, report, last, now)
        timely: list[CounterSample] = []
        rows: list[_Row] = []
        refused = rejected = 0
        for sample in placed(report, clocks):
            ends = [
                end
                for end in sample.ends
                if (end.vll, end.side) not in away or sample.from_ms < away[end.vll, end.side]
            ]
            good = []
            if _is_possible(sample, now):
                timely.append(sample)
                good = [end for end in ends if not _is_negative(end)]
            rejected += len(sample.ends) - len(ends)
            refused += len(ends) - len(good)
            rows += [(sample, end) for end in good]
        lock_buckets({(sample.from_ms, sample.to_ms) for sample in timely})
        accepted, marks = _insert(router, report, timely, rows, last if by_number else None, now)
        with connection.cursor() as cursor:
            losses_insert(cursor, router=router, report=report, good=timely)
            clock_write(cursor, router=router, report=report, last=last, clocks=clocks, marks=marks, now=now)
    if refused:
        log.warning("%s: %d counts with an impossible time or a negative value are refused", router, refused)
    return Stored(accepted, len(rows) - accepted, refused, rejected)


def _is_possible(sample: CounterSample, now: datetime) -> bool:
    """Return whether a sample can have its times. They are compared as integers of any size."""
    oldest_ms, newest_ms = to_ms(now - SAMPLES.retention), to_ms(now + MAX_OFFSET)
    is_within = oldest_ms <= sample.from_ms < sample.to_ms <= newest_ms
    return is_within and sample.to_ms - sample.from_ms <= LONGEST_SAMPLE // timedelta(milliseconds=1)


def _clocks(
    router: Router, report: CounterReport, last: LastCounters | None, now: datetime
) -> list[BootClock]:
    """Return the clocks after this report. An event records that samples keep the router's own clock."""
    before = last.clocks if last else []
    is_known = any(each.kernel_boot_id == report.kernel_boot_id for each in before)
    if report.kernel_boot_id and report.sent_uptime_ms is None and not is_known:
        announce("router.samples_by_own_clock", now=now, router_id=router.pk)
    return clocks_after(before, report, now)


def _lock_and_read(router: Router, report: CounterReport, now: datetime) -> tuple[LastCounters | None, _Away]:
    """Lock the router's AgentClock. Return the data of the last report, and the reported ends that are not on
    the router.
    """
    ends = list(dict.fromkeys((end.vll, end.side) for sample in report.samples for end in sample.ends))
    reported_ends = [_array(vll for vll, _ in ends), _array(side for _, side in ends)]
    with connection.cursor() as clock, connection.cursor() as elsewhere:
        # The lock lets the reports of a router be stored one after the other.
        clock.execute(_READ, [router.pk])
        elsewhere.execute(_ELSEWHERE, [*reported_ends, router.pk])
        away = _away(router, set(elsewhere.fetchall()))
        last = None
        if row := clock.fetchone():
            last = LastCounters(row[0], row[1], Marks(*row[2:4]), _CLOCKS.decode(row[4]))
        else:
            # From here on, this transaction has the row's lock.
            clock_write(clock, router=router, report=report, last=None, clocks=[], now=now)
    return last, away


def _lacks_partition(error: IntegrityError) -> bool:
    """Return whether a partition is missing: PostgreSQL then reports a check without a constraint's name."""
    cause = error.__cause__
    return isinstance(cause, CheckViolation) and cause.diag.constraint_name is None


def _away(router: Router, elsewhere: set[tuple[str, str]]) -> _Away:
    """Return when the ends ``elsewhere`` left this router: a late report may concern an earlier time."""
    away = dict.fromkeys(elsewhere, 0)
    if away:
        moves = EndMove.objects.filter(vll__in={vll for vll, _ in elsewhere}, router=router)
        for vll, side, at in moves.order_by("left_at").values_list("vll_id", "side", "left_at"):
            if (str(vll), side) in away:
                away[str(vll), side] = to_ms(at)
    return away


def _is_negative(end: EndCount) -> bool:
    policed: tuple[int, ...] = astuple(end.policer) if end.policer else ()
    return min(end.in_bytes, end.in_packets, end.out_bytes, end.out_packets, *policed) < 0


def _insert(
    router: Router,
    report: CounterReport,
    timely: list[CounterSample],
    rows: list[_Row],
    last: LastCounters | None,
    now: datetime,
) -> tuple[int, Marks]:
    """Insert all rows with one statement. Return the number of new rows, and the marks of their buckets."""
    if not rows:
        return 0, NO_MARKS
    samples = [sample for sample, _ in rows]
    ends = [end for _, end in rows]
    named = [_array(end.vll for end in ends), _array(end.side for end in ends)]
    # PostgreSQL fills shorter arrays with nulls.
    policed = ends if any(end.policer for end in ends) else []
    counted = [
        *(_array(map(attrgetter(name), ends)) for name in PER_END),
        *(_array(getattr(end.policer, name, "NULL") for end in policed) for name in POLICER),
        *(_array("NULL" if (n := getattr(end, name)) is None else n for end in ends) for name in DROPS),
    ]
    reporter: tuple[Any, ...] = (report.boot_id, router.pk, report.simulated)
    is_new = last is not None and last.are_before(report)
    marks = marks_of(timely, "".join(named)) if is_new else NO_MARKS
    with connection.cursor() as cursor:
        if last is not None and len(timely) == 1 and marks == last.marks and marks.exist(now):
            (sample,) = timely
            times = (sample.seq, to_time(sample.from_ms), to_time(sample.to_ms))
            cursor.execute(_NEW_ROWS, (*reporter, *times, *named, *counted))
            return len(rows), marks
        numbers = (_array(map(attrgetter(name), samples)) for name in ("seq", "from_ms", "to_ms"))
        cursor.execute(_INSERT, (*reporter, *named, *numbers, *counted))
        return int(cursor.fetchone()[0]), marks


def _array(values: Iterable[int | str]) -> str:
    """Return an array in PostgreSQL's notation. psycopg would check each element, which takes too long."""
    return "{" + ",".join(map(str, values)) + "}"
