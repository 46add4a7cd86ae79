"""Storing what agents count. Duplicates and disorder change nothing; what cannot be true is set aside."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, connection, transaction
from msgspec.structs import astuple
from psycopg.errors import CheckViolation

from portal.core.epoch import to_ms, to_time
from portal.core.sending import sent_together
from portal.inventory.models import Router
from portal.telemetry.partitions import partitions_ensure
from portal.telemetry.quarantine import (
    PER_END,
    POLICER,
    Suspect,
    contradiction,
    correction_ms,
    set_aside,
)
from portal.telemetry.reports import CounterReport, CounterSample, EndCount
from portal.telemetry.rollups import hold_buckets
from portal.vll.models import EndMove

# A sample that was set aside when it came first is a duplicate ever after: when it is sent again, its time
# may not be in the future any more.
_INSERT = """
WITH inserted AS (
    INSERT INTO telemetry_sample (vll_id, side, seq, from_at, to_at, in_bytes, in_packets, out_bytes,
                                  out_packets, conform_bytes, conform_packets, exceed_bytes, exceed_packets,
                                  violate_bytes, violate_packets, boot_id, router_id, simulated)
    SELECT vll_id, side, seq, 'epoch'::timestamptz + from_ms * interval '1 millisecond',
           'epoch'::timestamptz + to_ms * interval '1 millisecond', in_bytes, in_packets, out_bytes,
           out_packets, conform_bytes, conform_packets, exceed_bytes, exceed_packets, violate_bytes,
           violate_packets, %s::uuid, %s, %s
    FROM unnest(%s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
                %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
                %s::bigint[], %s::bigint[], %s::bigint[])
         AS reported (vll_id, side, seq, from_ms, to_ms, in_bytes, in_packets, out_bytes, out_packets,
                      conform_bytes, conform_packets, exceed_bytes, exceed_packets, violate_bytes,
                      violate_packets)
    WHERE NOT EXISTS (
        SELECT FROM telemetry_quarantinedrun AS run
        WHERE run.router_id = %s AND run.boot_id = %s AND run.seqs @> reported.seq
    )
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
"""


_CLOCK = """
INSERT INTO telemetry_agentclock (router_id, boot_id, offset_ms, measured_at, dropped)
VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (router_id) DO UPDATE
SET boot_id = EXCLUDED.boot_id, offset_ms = EXCLUDED.offset_ms, measured_at = EXCLUDED.measured_at,
    dropped = EXCLUDED.dropped
"""
_ELSEWHERE = """
SELECT reported.vll_id::text, reported.side FROM unnest(%s::uuid[], %s::text[]) AS reported (vll_id, side)
WHERE NOT EXISTS (
    SELECT FROM vll_vllend e
    WHERE e.vll_id = reported.vll_id AND e.side = reported.side
      AND e.port_id = ANY(ARRAY(SELECT id FROM inventory_port WHERE router_id = %s)))
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a report, in ends of samples. ``rejected``: those that were not on this router then."""

    accepted: int
    duplicate: int
    quarantined: int
    rejected: int


def counters_store(*, router: Router, report: CounterReport, now: datetime) -> Stored:
    """Store a router's samples, each once however often it is sent."""
    try:
        return _store(router, report, now)
    except IntegrityError as error:
        if not _lacks_partition(error):
            raise
    # They are made days ahead, but not for whatever comes late.
    partitions_ensure(
        {to_time(sample.to_ms).date() for sample in report.samples if not contradiction(sample, now)}
    )
    return _store(router, report, now)


@transaction.atomic
def _store(router: Router, report: CounterReport, now: datetime) -> Stored:
    reasons = [contradiction(sample, now) for sample in report.samples]
    with sent_together():
        _clock_store(router, report, now)
        hold_buckets(
            {
                (sample.from_ms, sample.to_ms)
                for sample, reason in zip(report.samples, reasons, strict=True)
                if not reason
            }
        )
        own = _ends_on(router, report)
    rows: list[tuple[CounterSample, EndCount]] = []
    suspects: list[Suspect] = []
    rejected = 0
    for sample, reason in zip(report.samples, reasons, strict=True):
        from_ms = sample.from_ms + correction_ms(report, reason, now)
        ends = [end for end in sample.ends if own.counts(end, from_ms)]
        rejected += len(sample.ends) - len(ends)
        good = [end for end in ends if not _is_negative(end)]
        if len(good) < len(ends):
            suspects.append(Suspect(sample, "negative", [end for end in ends if _is_negative(end)]))
        if reason is None:
            rows += [(sample, end) for end in good]
        elif good:
            suspects.append(Suspect(sample, reason, good))
    accepted = _insert(router, report, rows)
    quarantined = set_aside(router=router, report=report, suspects=suspects, now=now) if suspects else 0
    told_again = sum(len(each.ends) for each in suspects) - quarantined
    return Stored(accepted, len(rows) - accepted + told_again, quarantined, rejected)


def _lacks_partition(error: IntegrityError) -> bool:
    """PostgreSQL calls it a violated check, and names the table and no constraint."""
    cause = error.__cause__
    return isinstance(cause, CheckViolation) and cause.diag.constraint_name is None


def _clock_store(router: Router, report: CounterReport, now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_CLOCK, [router.pk, report.boot_id, to_ms(now) - report.sent_ms, now, report.dropped])


@dataclass(frozen=True, slots=True)
class _Ends:
    """The reported ends that are not on the router, and until when (ms) they were."""

    elsewhere: set[tuple[str, str]]
    left_ms: dict[tuple[str, str], int]

    def counts(self, end: EndCount, from_ms: int) -> bool:
        """Whether the router may speak of it: an end that has left counted there in samples begun before."""
        key = (end.vll, end.side)
        return key not in self.elsewhere or from_ms < self.left_ms.get(key, 0)


def _ends_on(router: Router, report: CounterReport) -> _Ends:
    """Of the reported ends those that are or were this router's, whatever their life cycle: a report may come
    late, and be about a time before the end moved away."""
    ends = {(end.vll, end.side) for sample in report.samples for end in sample.ends}
    with connection.cursor() as cursor:
        cursor.execute(
            _ELSEWHERE, [_array(vll for vll, _ in ends), _array(side for _, side in ends), router.pk]
        )
        elsewhere = set(cursor.fetchall())
    if not elsewhere:
        return _Ends(elsewhere, {})
    moves = EndMove.objects.filter(vll__in={vll for vll, _ in elsewhere}, router=router).order_by("left_at")
    return _Ends(
        elsewhere=elsewhere,
        left_ms={
            (str(vll), side): to_ms(at) for vll, side, at in moves.values_list("vll_id", "side", "left_at")
        },
    )


def _is_negative(end: EndCount) -> bool:
    policed: tuple[int, ...] = astuple(end.policer) if end.policer else ()
    return min(end.in_bytes, end.in_packets, end.out_bytes, end.out_packets, *policed) < 0


def _insert(router: Router, report: CounterReport, rows: list[tuple[CounterSample, EndCount]]) -> int:
    """One statement for all rows; returns how many were new."""
    if not rows:
        return 0
    # PostgreSQL fills a list that is shorter than the others up with nulls.
    policed = rows if any(end.policer for _, end in rows) else []
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            [
                report.boot_id,
                router.pk,
                report.simulated,
                _array(end.vll for _, end in rows),
                _array(end.side for _, end in rows),
                _array(sample.seq for sample, _ in rows),
                _array(sample.from_ms for sample, _ in rows),
                _array(sample.to_ms for sample, _ in rows),
                *(_array(getattr(end, name) for _, end in rows) for name in PER_END),
                *(_array(getattr(end.policer, name, None) for _, end in policed) for name in POLICER),
                *(router.pk, report.boot_id),
            ],
        )
        return int(cursor.fetchone()[0])


def _array(values: Iterable[int | str | None]) -> str:
    """What needs no quotes as PostgreSQL writes its arrays: psycopg looks at each element for longer than
    the server takes to store it."""
    return "{" + ",".join("NULL" if value is None else str(value) for value in values) + "}"
