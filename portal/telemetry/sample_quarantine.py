"""Quarantine of samples that cannot be true as reported, until the NOC decides (ADR 27).

If a router's clock is wrong, the times of its samples are wrong, but the counts are right. The report shows
the error of the clock: the time when the portal received the report, minus the report's ``sent_ms``. The
portal corrects the times of the samples by this error, adds up the counts by 5-minute bucket, and stores the
sums.

The time of a sample cannot be corrected if the sample contradicts itself, or if the clock was set between
counting and sending. The portal then only stores the number of such samples and some examples.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import connection
from msgspec.structs import asdict

from portal.core.clock import to_ms, to_time
from portal.inventory.models import Router
from portal.telemetry.models import Quarantine, QuarantinedSample
from portal.telemetry.partitions import month_is_whole
from portal.telemetry.reported_counters import (
    LONGEST_SAMPLE,
    CounterReport,
    CounterSample,
    EndCount,
    PolicerCount,
)
from portal.telemetry.rollup_tables import SAMPLES
from portal.telemetry.time_spans import month_span

MAX_AHEAD = timedelta(seconds=60)
# Two offsets are treated as the same if their difference is no larger than this. Equal clocks give different
# offsets, because reports take different times to arrive and clocks drift. The value is a sixth of MAX_AHEAD.
_SAME_OFFSET_MS = 10_000
# If this time passed between the end of a sample and the report, the clock may have had another error at the
# end of the sample.
WAITED = timedelta(minutes=5)
# The maximum number of undecided quarantines per router, and of examples of unusable samples per quarantine.
MOST_UNDECIDED = 100
MOST_EXAMPLES = 100
FROM_THE_FUTURE, TOO_OLD, UNSTEADY = "from_the_future", "too_old", "unsteady_clock"
_MS = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Suspect:
    """Ends of a sample that are not accepted as reported, and the reason."""

    sample: CounterSample
    reason: str
    ends: Sequence[EndCount]


def contradiction(sample: CounterSample, now: datetime) -> str | None:
    """Return the reason why a whole sample cannot be true; None if it can.

    The times are compared as milliseconds, because the integers may be outside datetime's range.
    """
    now_ms = to_ms(now)
    if sample.to_ms <= sample.from_ms:
        return "ends_before_it_begins"
    if sample.to_ms > now_ms + MAX_AHEAD // _MS:
        return FROM_THE_FUTURE
    if sample.to_ms - sample.from_ms > LONGEST_SAMPLE // _MS:
        return "too_long"
    if sample.from_ms < now_ms - SAMPLES.retention // _MS:
        return TOO_OLD
    return None


def correction_ms(report: CounterReport, reason: str | None, now: datetime) -> int:
    """Return the correction (ms) of the times of samples with that reason; 0 if no correction applies.

    Only samples that are too old or in the future are corrected, and only if the clock is wrong by more than
    MAX_AHEAD.
    """
    offset = to_ms(now) - report.sent_ms
    return offset if reason in (FROM_THE_FUTURE, TOO_OLD) and abs(offset) > MAX_AHEAD // _MS else 0


def set_aside(*, router: Router, report: CounterReport, suspects: Sequence[Suspect], now: datetime) -> int:
    """Store the suspects for a decision. Return the number of newly quarantined ends.

    Samples that were quarantined before are ignored. The caller must have locked the router's AgentClock, so
    that the router's reports are handled one after the other.
    """
    known = _known(router, report, suspects)
    first: dict[int, CounterSample] = {}
    suspects = [
        each
        for each in suspects
        if each.sample.seq not in known and first.setdefault(each.sample.seq, each.sample) is each.sample
    ]
    if not suspects:
        return 0
    shelves = _Shelves(router, report, now)
    by_shelf: dict[int, list[Suspect]] = defaultdict(list)
    for each in suspects:
        by_shelf[shelves.of(each)].append(each)
    shelves.save(by_shelf)
    _add_ends(by_shelf)
    _add_five_minutes(shelves, by_shelf, report)
    _add_examples(shelves, by_shelf, report, now)
    _note(router, report, suspects, now)
    return sum(len(each.ends) for each in suspects)


class _Shelves:
    """The router's undecided quarantines, and the assignment of samples to them."""

    def __init__(self, router: Router, report: CounterReport, now: datetime) -> None:
        self._router, self._report, self._now = router, report, now
        undecided = Quarantine.objects.filter(router=router, state=Quarantine.State.UNDECIDED)
        # The lock makes a concurrent decision wait. If the decision came first, the samples go to another
        # quarantine.
        self._open = list(undecided.select_for_update().order_by("-last_received_at"))
        self._whole: dict[date, bool] = {}

    def __getitem__(self, pk: int) -> Quarantine:
        return next(each for each in self._open if each.pk == pk)

    def of(self, suspect: Suspect) -> int:
        reason, sample = suspect.reason, suspect.sample
        month, offset_ms = self._place(suspect), correction_ms(self._report, suspect.reason, self._now)
        found = self._find(reason, month, offset_ms)
        if found is None and len(self._open) >= MOST_UNDECIDED:
            # The clock keeps changing. The number of quarantines is limited, because nobody could decide
            # about so many.
            reason, month = UNSTEADY, None
            found = self._find(reason, month, offset_ms)
        if found is None:
            found = Quarantine.objects.create(
                router=self._router,
                reason=reason,
                month=month,
                offset_ms=offset_ms if month else to_ms(self._now) - self._report.sent_ms,
                first_ms=sample.from_ms,
                last_ms=sample.to_ms,
                first_received_at=self._now,
                last_received_at=self._now,
            )
            self._open.insert(0, found)
        return found.pk

    def save(self, by_shelf: dict[int, list[Suspect]]) -> None:
        sent_ms, changed = self._report.sent_ms, []
        for pk, suspects in by_shelf.items():
            found = self[pk]
            found.last_received_at = self._now
            for each in suspects:
                found.first_ms = min(found.first_ms, each.sample.from_ms)
                found.last_ms = max(found.last_ms, each.sample.to_ms)
                found.samples += len(each.ends)
                if sent_ms - each.sample.to_ms > WAITED // _MS:
                    found.waited += len(each.ends)
            changed.append(found)
        columns = ["last_received_at", "first_ms", "last_ms", "samples", "waited"]
        Quarantine.objects.bulk_update(changed, columns)

    def _find(self, reason: str, month: date | None, offset_ms: int) -> Quarantine | None:
        for each in self._open:
            if (each.reason, each.month) == (reason, month) and (
                month is None or abs(each.offset_ms - offset_ms) <= _SAME_OFFSET_MS
            ):
                return each
        return None

    def _place(self, suspect: Suspect) -> date | None:
        """Return the month of the corrected sample; None if its time cannot be corrected.

        Also return None if the 5-minute rows of that month are no longer stored.
        """
        reason, sample, now_ms = suspect.reason, suspect.sample, to_ms(self._now)
        offset_ms = correction_ms(self._report, reason, self._now)
        if reason not in (FROM_THE_FUTURE, TOO_OLD) or sample.to_ms - sample.from_ms > LONGEST_SAMPLE // _MS:
            return None
        # The sample's start is not in the future, so the clock was set during the sample.
        if reason == FROM_THE_FUTURE and sample.from_ms <= now_ms:
            return None
        # Even the corrected time is in the future, so the clock was set between counting and sending.
        if sample.to_ms + offset_ms > now_ms + MAX_AHEAD // _MS:
            return None
        if sample.from_ms + offset_ms < 0:
            return None
        month = to_time(sample.to_ms + offset_ms - 1).date().replace(day=1)
        if month not in self._whole:
            self._whole[month] = month_is_whole(month, now=self._now)
        return month if self._whole[month] else None


_KNOWN = """
SELECT seq FROM unnest(%s::bigint[]) AS reported (seq)
JOIN telemetry_quarantinedrun ON router_id = %s AND boot_id = %s AND seqs @> seq
"""
_NOTE = """
INSERT INTO telemetry_quarantinedrun (router_id, boot_id, seqs, last_received_at)
SELECT %s, %s::uuid, range_agg(int8range(seq, seq, '[]')), %s FROM unnest(%s::bigint[]) AS reported (seq)
ON CONFLICT (router_id, boot_id) DO UPDATE
SET seqs = telemetry_quarantinedrun.seqs + EXCLUDED.seqs, last_received_at = EXCLUDED.last_received_at
"""


def _known(router: Router, report: CounterReport, suspects: Sequence[Suspect]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [[each.sample.seq for each in suspects], router.pk, report.boot_id])
        return {seq for (seq,) in cursor.fetchall()}


def _note(router: Router, report: CounterReport, suspects: Sequence[Suspect], now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [router.pk, report.boot_id, now, [each.sample.seq for each in suspects]])


_ADD_ENDS = """
INSERT INTO telemetry_quarantinedend (quarantine_id, vll_id, side, samples, added, left_out)
SELECT quarantine, vll, side, count(*), 0, 0
FROM unnest(%s::bigint[], %s::uuid[], %s::text[]) AS reported (quarantine, vll, side)
GROUP BY quarantine, vll, side ORDER BY quarantine, vll, side
ON CONFLICT (quarantine_id, vll_id, side) DO UPDATE
SET samples = telemetry_quarantinedend.samples + EXCLUDED.samples
"""


def _add_ends(by_shelf: dict[int, list[Suspect]]) -> None:
    ends = [(pk, end) for pk, suspects in by_shelf.items() for each in suspects for end in each.ends]
    with connection.cursor() as cursor:
        cursor.execute(
            _ADD_ENDS,
            [[pk for pk, _ in ends], [end.vll for _, end in ends], [end.side for _, end in ends]],
        )


PER_END = ("in_bytes", "in_packets", "out_bytes", "out_packets")
POLICER = PolicerCount.__struct_fields__
_SUMMED = ("covered_ms", *PER_END, *POLICER)
# As in all rollups, each sample counts evenly over its time (rollups.FROM_SAMPLES).
_ADD_FIVE_MINUTES = f"""
INSERT INTO telemetry_quarantinedfiveminutes AS known
    (quarantine_id, vll_id, side, start_at, policed, simulated, covered_ms, {", ".join((*PER_END, *POLICER))})
SELECT quarantine, vll, side, start_at, conform_bytes IS NOT NULL, %s, sum(overlap_ms)::bigint,
       {", ".join(f"sum({name} * (overlap_ms / length_ms))" for name in (*PER_END, *POLICER))}
FROM (
    SELECT moved.*, (to_ms - from_ms)::float8 AS length_ms, start_at,
           round(1000 * extract(epoch FROM least(to_at, start_at + interval '5 minutes')
                                           - greatest(from_at, start_at)))::float8 AS overlap_ms
    FROM (
        SELECT reported.*, 'epoch'::timestamptz + from_ms * interval '1 millisecond' AS from_at,
               'epoch'::timestamptz + to_ms * interval '1 millisecond' AS to_at
        FROM unnest(%s::bigint[], %s::uuid[], %s::text[], %s::bigint[], %s::bigint[],
                    {", ".join(["%s::bigint[]"] * len((*PER_END, *POLICER)))})
             AS reported (quarantine, vll, side, from_ms, to_ms, {", ".join((*PER_END, *POLICER))})
    ) AS moved
    CROSS JOIN LATERAL generate_series(
        date_bin('5 minutes', from_at, 'epoch'), to_at - interval '1 microsecond', '5 minutes') AS start_at
) AS shared
WHERE overlap_ms > 0
GROUP BY quarantine, vll, side, start_at, conform_bytes IS NOT NULL
ORDER BY quarantine, vll, side, start_at
ON CONFLICT (quarantine_id, vll_id, side, start_at, policed) DO UPDATE
SET {", ".join(f"{name} = known.{name} + EXCLUDED.{name}" for name in _SUMMED)},
    simulated = known.simulated OR EXCLUDED.simulated
"""  # noqa: S608 - constants


def _add_five_minutes(shelves: _Shelves, by_shelf: dict[int, list[Suspect]], report: CounterReport) -> None:
    rows = list(_moved(shelves, by_shelf))
    if not rows:
        return
    with connection.cursor() as cursor:
        columns = [list(column) for column in zip(*rows, strict=True)]
        cursor.execute(_ADD_FIVE_MINUTES, [report.simulated, *columns])


def _moved(shelves: _Shelves, by_shelf: dict[int, list[Suspect]]) -> Iterator[tuple[Any, ...]]:
    """Yield a row per end, with the times corrected by the offset of its quarantine.

    All samples of a quarantine get the same offset, so that consecutive samples remain consecutive.
    """
    for pk, suspects in by_shelf.items():
        found = shelves[pk]
        if found.month is None:
            continue
        # A decision concerns one month. If a sample crosses the end of a month, it counts in the month in
        # which it ends.
        begin_ms, over_ms = map(to_ms, month_span(found.month))
        for each in suspects:
            from_ms, until_ms = (
                min(max(at_ms + found.offset_ms, begin_ms), over_ms)
                for at_ms in (each.sample.from_ms, each.sample.to_ms)
            )
            from_ms, until_ms = min(from_ms, over_ms - 1), max(until_ms, begin_ms + 1)
            for end in each.ends:
                yield (
                    *(pk, end.vll, end.side, from_ms, until_ms),
                    *(getattr(end, name) for name in PER_END),
                    *(getattr(end.policer, name, None) for name in POLICER),
                )


def _add_examples(
    shelves: _Shelves, by_shelf: dict[int, list[Suspect]], report: CounterReport, now: datetime
) -> None:
    examples = []
    for pk, suspects in by_shelf.items():
        if shelves[pk].month is None:
            room = MOST_EXAMPLES - QuarantinedSample.objects.filter(quarantine=pk).count()
            examples += [
                QuarantinedSample(
                    quarantine_id=pk, received_at=now, reason=each.reason, sample=_as_json(report, each)
                )
                for each in suspects[: max(0, room)]
            ]
    QuarantinedSample.objects.bulk_create(examples)


def _as_json(report: CounterReport, suspect: Suspect) -> dict[str, Any]:
    return {
        "boot_id": report.boot_id,
        "sent_ms": report.sent_ms,
        "simulated": report.simulated,
        "seq": suspect.sample.seq,
        "from_ms": suspect.sample.from_ms,
        "to_ms": suspect.sample.to_ms,
        "ends": [asdict(end) | {"policer": end.policer and asdict(end.policer)} for end in suspect.ends],
    }
