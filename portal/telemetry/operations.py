"""Storing what agents count. Duplicates and disorder change nothing; what cannot be true is set aside."""

from dataclasses import asdict, astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from portal.inventory.models import Router
from portal.telemetry.models import AgentClock, QuarantinedSample
from portal.telemetry.partitions import partitions_ensure
from portal.telemetry.reports import CounterReport, CounterSample, EndCount, PolicerCount
from portal.telemetry.rollups import LONGEST_SAMPLE
from portal.telemetry.tables import SAMPLES
from portal.vll.models import EndMove

MAX_AHEAD = timedelta(seconds=60)
_POLICER = tuple(field.name for field in fields(PolicerCount))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Whoever rolls a bucket up must not take its mark away under a sample that is not committed yet: a mark that
# is there already is locked, though not changed.
_INSERT = """
WITH inserted AS (
    INSERT INTO telemetry_sample (vll_id, side, seq, from_at, to_at, in_bytes, in_packets, out_bytes,
                                  out_packets, conform_bytes, conform_packets, exceed_bytes, exceed_packets,
                                  violate_bytes, violate_packets, boot_id, router_id, simulated)
    SELECT vll_id, side, seq, 'epoch'::timestamptz + from_ms * interval '1 millisecond',
           'epoch'::timestamptz + to_ms * interval '1 millisecond', in_bytes, in_packets, out_bytes,
           out_packets, conform_bytes, conform_packets, exceed_bytes, exceed_packets, violate_bytes,
           violate_packets, %s, %s, %s
    FROM unnest(%s::uuid[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
                %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[],
                %s::bigint[], %s::bigint[], %s::bigint[])
         AS reported (vll_id, side, seq, from_ms, to_ms, in_bytes, in_packets, out_bytes, out_packets,
                      conform_bytes, conform_packets, exceed_bytes, exceed_packets, violate_bytes,
                      violate_packets)
    ON CONFLICT DO NOTHING
    RETURNING vll_id, side, from_at, to_at
), marked AS (
    INSERT INTO telemetry_stale_bucket (vll_id, step_s, start_at, side)
    SELECT DISTINCT vll_id, 300, start_at, side
    FROM inserted, generate_series(date_bin('5 minutes', from_at, 'epoch'),
                                   to_at - interval '1 microsecond', '5 minutes') AS start_at
    ORDER BY vll_id, start_at, side
    ON CONFLICT ON CONSTRAINT a_bucket_is_marked_once DO UPDATE SET side = EXCLUDED.side WHERE false
)
SELECT count(*) FROM inserted
"""


# One list, whatever its length: a parameter for each would make another statement each time.
_HERE = """
SELECT e.vll_id, e.side FROM vll_vllend e JOIN inventory_port p ON p.id = e.port_id
WHERE e.vll_id = ANY(%s::uuid[]) AND p.router_id = %s
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a report, in ends of samples. ``rejected``: those that were not on this router then."""

    accepted: int
    duplicate: int
    quarantined: int
    rejected: int


@transaction.atomic
def counters_store(*, router: Router, report: CounterReport, now: datetime) -> Stored:
    """Store a router's samples, each once however often it is sent."""
    _clock_store(router, report, now)
    own = _ends_on(router, report)
    rows: list[tuple[CounterSample, EndCount]] = []
    set_aside: list[QuarantinedSample] = []
    quarantined = rejected = 0
    for sample in report.samples:
        ends = [end for end in sample.ends if own.counts(end, sample)]
        rejected += len(sample.ends) - len(ends)
        reason = _contradiction(sample, now)
        good = [] if reason else [end for end in ends if not _is_negative(end)]
        rows += [(sample, end) for end in good]
        if len(good) < len(ends):
            bad = [end for end in ends if reason or _is_negative(end)]
            quarantined += len(bad)
            set_aside.append(
                QuarantinedSample(
                    router=router,
                    received_at=now,
                    reason=reason or "negative",
                    sample=_as_json(report, sample, bad),
                )
            )
    QuarantinedSample.objects.bulk_create(set_aside)
    accepted = _insert(router, report, rows)
    return Stored(accepted, len(rows) - accepted, quarantined, rejected)


def _clock_store(router: Router, report: CounterReport, now: datetime) -> None:
    clock = AgentClock(
        router=router,
        boot_id=report.boot_id,
        offset_ms=_ms(now) - report.sent_ms,
        measured_at=now,
        dropped=report.dropped,
    )
    AgentClock.objects.bulk_create(
        [clock],
        update_conflicts=True,
        unique_fields=["router"],
        update_fields=["boot_id", "offset_ms", "measured_at", "dropped"],
    )


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ends that count on a router: those that are there, and until when (ms) others were."""

    here: set[tuple[Any, str]]
    left_ms: dict[tuple[Any, str], int]

    def counts(self, end: EndCount, sample: CounterSample) -> bool:
        """Whether the router may speak of it: an end that has left counted there in samples begun before."""
        return (end.vll, end.side) in self.here or sample.from_ms < self.left_ms.get((end.vll, end.side), 0)


def _ends_on(router: Router, report: CounterReport) -> _Ends:
    """Of the reported ends those that are or were this router's, whatever their life cycle: a report may come
    late, and be about a time before the end moved away."""
    vlls = {end.vll for sample in report.samples for end in sample.ends}
    with connection.cursor() as cursor:
        cursor.execute(_HERE, [list(vlls), router.pk])
        here = set(cursor.fetchall())
    gone = {end.vll for sample in report.samples for end in sample.ends if (end.vll, end.side) not in here}
    # Not asked where none is gone, as nearly always: Django asks nothing for an empty list.
    moves = EndMove.objects.filter(vll__in=gone, router=router).order_by("left_at")
    return _Ends(
        here=here,
        left_ms={(vll, side): _ms(at) for vll, side, at in moves.values_list("vll_id", "side", "left_at")},
    )


def _contradiction(sample: CounterSample, now: datetime) -> str | None:
    """Why a sample cannot be true as a whole, or None. All in milliseconds: any integer may come in."""
    now_ms = _ms(now)
    if sample.to_ms <= sample.from_ms:
        return "ends_before_it_begins"
    if sample.to_ms > now_ms + MAX_AHEAD // timedelta(milliseconds=1):
        return "from_the_future"
    if sample.to_ms - sample.from_ms > LONGEST_SAMPLE // timedelta(milliseconds=1):
        return "too_long"
    if sample.from_ms < now_ms - SAMPLES.retention // timedelta(milliseconds=1):
        return "too_old"
    return None


def _is_negative(end: EndCount) -> bool:
    policed: tuple[int, ...] = astuple(end.policer) if end.policer else ()
    return min(end.in_bytes, end.in_packets, end.out_bytes, end.out_packets, *policed) < 0


def _as_json(report: CounterReport, sample: CounterSample, ends: list[EndCount]) -> dict[str, Any]:
    return {
        "boot_id": str(report.boot_id),
        "seq": sample.seq,
        "from_ms": sample.from_ms,
        "to_ms": sample.to_ms,
        "ends": [asdict(end) | {"vll": str(end.vll)} for end in ends],
    }


def _insert(router: Router, report: CounterReport, rows: list[tuple[CounterSample, EndCount]]) -> int:
    """One statement for all rows; returns how many were new."""
    if not rows:
        return 0
    partitions_ensure({_time(to_ms).date() for to_ms in {sample.to_ms for sample, _ in rows}})
    # PostgreSQL fills a list that is shorter than the others up with nulls.
    policed = rows if any(end.policer for _, end in rows) else []
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            [
                report.boot_id,
                router.pk,
                report.simulated,
                [end.vll for _, end in rows],
                [end.side for _, end in rows],
                [sample.seq for sample, _ in rows],
                [sample.from_ms for sample, _ in rows],
                [sample.to_ms for sample, _ in rows],
                [end.in_bytes for _, end in rows],
                [end.in_packets for _, end in rows],
                [end.out_bytes for _, end in rows],
                [end.out_packets for _, end in rows],
                *([getattr(end.policer, name, None) for _, end in policed] for name in _POLICER),
            ],
        )
        return int(cursor.fetchone()[0])


def _ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _time(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
