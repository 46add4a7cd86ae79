"""The judgement of a silence, and its effect on the history of the lines that end on the router.

While there is evidence that the router's VPP works, its lines are unknown. Without evidence for
LONGLINE_SILENCE_IS_DOWN_S, the lines are down, back to the last evidence. Counters that arrive later are
judged too, for example from an agent that was disconnected. An interval of a line may change as long as
samples of it are accepted, but not after its month is frozen.

The cost of a judgement depends on the new data only, and not on the length of the silence. The roll-up
records which 5 minutes of a silence it counted (UnjudgedFiveMinutes). A judgement reads only those, in
portions, and stores the result: ``forwarded_spans`` for the router, judged intervals for its lines. When
nothing is left to read, it decides which time counts as down. It rewrites only the time whose verdict has
changed.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Q

from portal.inventory.models import RouterSilence
from portal.telemetry.agent_api_uptime import listened
from portal.telemetry.bucket_queries import counted_now
from portal.telemetry.models import FrozenMonth, OperInterval, UnjudgedFiveMinutes
from portal.telemetry.rollup_tables import FIVE_MINUTES
from portal.telemetry.rollups import REPORTING_DELAY, lock_roll_ups
from portal.telemetry.silence_arithmetic import (
    BUCKET,
    Interval,
    down_in,
    last_five_minutes,
    rewritten,
    spoken_for,
    verdicts_on,
)
from portal.telemetry.time_spans import Span, in_one_only, merged, month_span, within
from portal.vll.models import VllEnd
from portal.vll.operations import oper_statuses_refresh
from portal.vll.operations.oper_status import FRESH, lines_lock
from portal.vll.states import OperStatus

log = logging.getLogger(__name__)

# A portion: this many rows of 5 minutes are read in one transaction, which takes about a second.
ROWS_TOGETHER = 200_000
# With more waiting 5 minutes than this, the roll-up is far behind and nothing counts as down.
_MOST_UNCOUNTED = 20_000
_OTHER = {"a": "z", "z": "a"}
_VERDICT = (
    "forwarded_at",
    "forwarded_spans",
    "down_spans",
    "counts_as_down",
    "judged_until",
    "judged_interval",
)
# By line on the router: the router of each of its ends.
Lines = Mapping[UUID, Mapping[str, int]]
Spans = dict[UUID, list[Span]]

# The counts of the lines on the router in some 5 minutes. Per line: when frames came out of either of its
# ends, and when the line was evidence for the router. It was if the router's own agent counted, or if frames
# came out at the end on another router.
_COUNTED = """
WITH here AS MATERIALIZED (
    SELECT one_end.vll_id, bool_or(one_end.side = 'a') AS a_here, bool_or(one_end.side = 'z') AS z_here
    FROM vll_vllend AS one_end JOIN inventory_port AS port ON port.id = one_end.port_id
    WHERE port.router_id = %(router)s GROUP BY one_end.vll_id
), counted AS (
    SELECT here.vll_id, tstzrange(five.start_at, five.start_at + interval '5 minutes') AS during,
           five.a_out_packets > 0 OR five.z_out_packets > 0 AS forwarded,
           a_here AND (five.a_covered_ms > 0 OR NOT z_here AND five.z_out_packets > 0)
           OR z_here AND (five.z_covered_ms > 0 OR NOT a_here AND five.a_out_packets > 0) AS speaks
    FROM here JOIN telemetry_five_minutes AS five ON five.vll_id = here.vll_id
    WHERE five.start_at = ANY(%(starts)s) AND five.start_at >= %(first)s AND five.start_at <= %(last)s
)
SELECT vll_id, range_agg(during) FILTER (WHERE forwarded), range_agg(during) FILTER (WHERE speaks)
FROM counted WHERE forwarded OR speaks GROUP BY vll_id
"""
# When frames came out of some lines, each within its own span.
_FORWARDED = """
SELECT five.vll_id, range_agg(tstzrange(five.start_at, five.start_at + interval '5 minutes'))
FROM unnest(%(vlls)s::uuid[], %(since)s::timestamptz[], %(until)s::timestamptz[])
     AS part (vll_id, since, until)
JOIN telemetry_five_minutes AS five ON five.vll_id = part.vll_id
     AND five.start_at > part.since - interval '5 minutes' AND five.start_at < part.until
WHERE five.a_out_packets > 0 OR five.z_out_packets > 0
GROUP BY five.vll_id
"""
# Completed 5 minutes of the router's lines that are not rolled up.
_UNCOUNTED = """
SELECT DISTINCT mark.vll_id, mark.start_at
FROM vll_vllend AS one_end JOIN inventory_port AS port ON port.id = one_end.port_id
JOIN telemetry_stale_bucket AS mark ON mark.vll_id = one_end.vll_id AND mark.step_s = 300
WHERE port.router_id = %(router)s AND mark.start_at >= %(since)s AND mark.start_at <= %(over)s
LIMIT %(most)s
"""
_FROM_THE_BEGINNING = """
INSERT INTO telemetry_unjudgedfiveminutes (silence_id, start_at)
SELECT %(silence)s, start_at
FROM generate_series(date_bin('5 minutes', %(since)s, 'epoch'), %(until)s, interval '5 minutes') AS start_at
"""
# Materialized: otherwise a plan could run the selection once per row and take more rows than the limit.
_TAKE = """
WITH portion AS MATERIALIZED (
    SELECT start_at FROM telemetry_unjudgedfiveminutes WHERE silence_id = %(silence)s
    ORDER BY start_at LIMIT %(most)s FOR UPDATE
)
DELETE FROM telemetry_unjudgedfiveminutes AS taken USING portion
WHERE taken.silence_id = %(silence)s AND taken.start_at = portion.start_at
RETURNING taken.start_at
"""
_NEWEST_INTERVAL = "SELECT pg_sequence_last_value(pg_get_serial_sequence('telemetry_operinterval', 'id'))"


def silence_judge(*, silence_id: int, now: datetime) -> bool:
    """Judge one portion of a silence. Return whether more is left.

    Does nothing while another process judges the same silence.
    """
    _begin_again(silence_id, now)
    return _judge_a_portion(silence_id, now)


@transaction.atomic
def _begin_again(silence_id: int, now: datetime) -> None:
    """Mark a silence as completely unjudged, if it was never judged or must be judged again from its
    beginning.
    """
    unread = RouterSilence.objects.filter(Q(judge_again=True) | Q(judged_until=None), pk=silence_id)
    if not unread.exists():
        return
    with connection.cursor() as cursor:
        # A roll-up that does not know the silence yet must commit before its rows are read.
        lock_roll_ups(cursor)
        silence = unread.select_for_update(skip_locked=True, no_key=True).first()
        if silence is None:
            return
        UnjudgedFiveMinutes.objects.filter(silence=silence).delete()
        since = max(silence.since, now - FIVE_MINUTES.retention)
        cursor.execute(
            _FROM_THE_BEGINNING,
            {"silence": silence.pk, "since": since, "until": silence.until or now},
        )
    RouterSilence.objects.filter(pk=silence.pk).update(
        judge_again=False, judged_until=silence.since, judged_interval=0, forwarded_spans=[]
    )


@transaction.atomic
def _judge_a_portion(silence_id: int, now: datetime) -> bool:
    found = RouterSilence.objects.select_for_update(skip_locked=True, no_key=True).filter(
        pk=silence_id, judge_again=False, judged_until__isnull=False
    )
    silence = found.first()
    if silence is None:
        return False
    span = (silence.since, silence.until or now)
    over = silence.until is not None
    lines = _lines_on(silence.router_id)
    starts, is_more = _take(silence, span, max(1, ROWS_TOGETHER // max(1, len(lines))))
    forwarded, spoken = _counted(silence.router_id, starts)
    forwarded = {vll: spoken_for(span, spans, over=over) for vll, spans in forwarded.items()}
    silence.forwarded_spans = _as_json(merged([*_from_json(silence.forwarded_spans), *spoken]))
    # Lock all lines together, in the common order.
    lines_lock(lines)
    newer = _newer(silence, lines)
    late = _forwarded_in(newer, span, over=over)
    found_up = {vll: merged([*forwarded.get(vll, ()), *late.get(vll, ())]) for vll in {*forwarded, *late}}
    touched = {vll: merged([*forwarded.get(vll, ()), *newer.get(vll, ())]) for vll in {*forwarded, *newer}}
    _rewrite(span, {vll: lines[vll] for vll in touched}, touched, found_up, set())
    if not is_more:
        _decide(silence, span, lines, now)
    silence.judged_interval = _newest_interval()
    silence.save(update_fields=_VERDICT)
    return is_more


def _decide(silence: RouterSilence, span: Span, lines: Lines, now: datetime) -> None:
    """Decide when the router was down, after all counts are read.

    Does nothing while the roll-up is far behind.
    """
    over = silence.until is not None
    spoken = spoken_for(span, _from_json(silence.forwarded_spans), over=over)
    listening = listened(*span)
    longest = timedelta(seconds=settings.LONGLINE_SILENCE_IS_DOWN_S)
    before = _from_json(silence.down_spans)
    down = down_in(span, spoken, listened=listening, longest=longest)
    if newly := within(in_one_only(down, before), down):
        uncounted = _uncounted(silence.router_id, newly, now)
        if len(uncounted) > _MOST_UNCOUNTED:
            log.warning("the roll-up is behind: a silence is not judged", extra={"router": silence.router_id})
            return
        if uncounted:
            speaking = _speaking_now(silence.router_id, lines, uncounted)
            spoken = merged([*spoken, *spoken_for(span, speaking, over=over)])
            down = down_in(span, spoken, listened=listening, longest=longest)
    changed = merged([*in_one_only(down, before), (max(silence.judged_until or span[0], span[0]), span[1])])
    silence.forwarded_at = spoken[-1][1] if spoken else None
    silence.down_spans = _as_json(down)
    silence.judged_until = span[1]
    counts_as_down = not over and bool(down) and down[-1][1] >= now - FRESH
    turns = counts_as_down != silence.counts_as_down
    silence.counts_as_down = counts_as_down
    # The status of lines, and the verdict on lines of two silent routers, read this row.
    silence.save(update_fields=_VERDICT)
    turned = oper_statuses_refresh(router_id=silence.router_id, now=now) if turns else set()
    _rewrite(span, lines, dict.fromkeys(lines, changed), {}, turned)


def _lines_on(router_id: int) -> Lines:
    """Return, by line on the router, the routers of both of its ends."""
    here = VllEnd.objects.filter(port__router=router_id).values("vll")
    found: dict[UUID, dict[str, int]] = {}
    ends = VllEnd.objects.filter(vll__in=here).values_list("vll_id", "side", "port__router_id")
    for vll, side, router in ends:
        found.setdefault(vll, {})[side] = router
    return found


def _take(silence: RouterSilence, span: Span, most: int) -> tuple[list[datetime], bool]:
    """Take the starts of some 5 minutes off the list. Return them and whether others remain."""
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, {"silence": silence.pk, "most": most})
        starts = sorted(start for (start,) in cursor.fetchall())
    if silence.until is not None and (silence.judged_until or span[0]) < silence.until:
        # The silence is over, so its last 5 minutes are also evidence for its remainder.
        starts = sorted({*starts, last_five_minutes(span)})
    return starts, silence.unjudged.exists()


def _counted(router_id: int, starts: Sequence[datetime]) -> tuple[Spans, list[Span]]:
    """Return when each line forwarded in these 5 minutes, and when there was evidence for the router."""
    if not starts:
        return {}, []
    parameters: dict[str, Any] = {
        "router": router_id,
        "starts": list(starts),
        "first": starts[0],
        "last": starts[-1],
    }
    forwarded: Spans = {}
    spoken: set[Span] = set()
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, parameters)
        for vll, out, speaks in cursor.fetchall():
            if out is not None:
                forwarded[vll] = [(part.lower, part.upper) for part in out]
            spoken.update((part.lower, part.upper) for part in speaks or ())
    return forwarded, merged(spoken)


def _uncounted(router_id: int, spans: Sequence[Span], now: datetime) -> list[tuple[UUID, datetime]]:
    """Return the router's lines and completed 5 minutes in these spans that are not yet rolled up."""
    parameters: dict[str, Any] = {
        "router": router_id,
        "since": spans[0][0] - BUCKET,
        "over": min(spans[-1][1], now - REPORTING_DELAY - BUCKET),
        "most": _MOST_UNCOUNTED + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_UNCOUNTED, parameters)
        return list(cursor.fetchall())


def _speaking_now(router_id: int, lines: Lines, uncounted: Collection[tuple[UUID, datetime]]) -> list[Span]:
    """Count 5 minutes that wait for the roll-up. Return those with evidence for the router."""
    columns = ("a_covered_ms", "z_covered_ms", "a_out_packets", "z_out_packets")
    with connection.cursor() as cursor:
        rows = counted_now(cursor, sorted(uncounted), columns)
    found = set()
    for vll, start, *values in rows:
        of = dict(zip(columns, values, strict=True))
        for side, router in lines[vll].items():
            far = _OTHER[side]
            elsewhere = lines[vll].get(far) != router_id
            if router == router_id and (of[f"{side}_covered_ms"] or (elsewhere and of[f"{far}_out_packets"])):
                found.add((start, start + BUCKET))
    return merged(found)


def _rewrite(
    span: Span, lines: Lines, touched: Mapping[UUID, Sequence[Span]], forwarded: Spans, turned: set[UUID]
) -> None:
    """Write the verdict into the history of these locked lines, within the spans that are ``touched``.

    ``forwarded`` comes from the current read; earlier judgements are in the intervals. The status of lines in
    ``turned`` follows from this verdict.
    """
    parts = merged(part for spans in touched.values() for part in spans)
    if not parts:
        return
    down_on = _down_spans({router for ends in lines.values() for router in ends.values()}, span)
    since = _open_since(span[0])
    moved = _moved(lines)
    rows: dict[UUID, list[OperInterval]] = {}
    # Include intervals that only touch the first or the last part, to merge equal neighbours.
    reaching = OperInterval.objects.filter(
        Q(ended_at__isnull=True) | Q(ended_at__gte=parts[0][0]), vll_id__in=lines, began_at__lte=parts[-1][1]
    )
    for row in reaching.order_by("began_at", "pk"):
        rows.setdefault(row.vll_id, []).append(row)
    new: list[OperInterval] = []
    old: list[int] = []
    for vll, intervals in rows.items():
        mine = (max(since, moved.get(vll, since)), span[1])
        before = [_interval(row, turned) for row in intervals]
        was_up = ((i.began, i.ended or span[1]) for i in before if i.judged and i.status == OperStatus.UP)
        up = merged([*forwarded.get(vll, ()), *was_up])
        down = merged(each for router in lines[vll].values() for each in down_on.get(router, ()))
        verdicts = [
            verdict
            for part in within([mine], touched[vll])
            for verdict in verdicts_on(part, forwarded=up, down=down)
        ]
        after = rewritten(before, verdicts)
        # Most of a long history does not change.
        kept, stored = set(after), {_interval(row, set()) for row in intervals}
        old += [row.pk for row in intervals if _interval(row, set()) not in kept]
        new += [_row(vll, interval) for interval in after if interval not in stored]
    OperInterval.objects.filter(pk__in=old).delete()
    OperInterval.objects.bulk_create(new, batch_size=1000)


def _newer(silence: RouterSilence, lines: Lines) -> Spans:
    """Return, by line, the time before the last judgement that has an interval written after it.

    A status is dated back to the moment when the last report of a router became stale.
    """
    judged_until = silence.judged_until
    if not silence.judged_interval or judged_until is None or judged_until <= silence.since:
        return {}
    written = OperInterval.objects.filter(
        Q(ended_at__isnull=True) | Q(ended_at__gt=silence.since),
        vll_id__in=lines,
        pk__gt=silence.judged_interval,
        began_at__lt=judged_until,
    )
    found: Spans = {}
    for vll, began_at, ended_at in written.values_list("vll_id", "began_at", "ended_at"):
        part = (max(began_at, silence.since), min(ended_at or judged_until, judged_until))
        found[vll] = merged([*found.get(vll, ()), part])
    return found


def _forwarded_in(spans: Spans, silence: Span, *, over: bool) -> Spans:
    """Return, by line, when frames came out of it, read again for these spans only."""
    parts = [(vll, *span) for vll, of in spans.items() for span in of]
    if not parts:
        return {}
    vlls, since, until = (list(column) for column in zip(*parts, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_FORWARDED, {"vlls": vlls, "since": since, "until": until})
        return {
            vll: spoken_for(silence, [(part.lower, part.upper) for part in found], over=over)
            for vll, found in cursor.fetchall()
        }


def _moved(lines: Lines) -> dict[UUID, datetime]:
    """Return when an end of these lines last moved, for lines that were moved."""
    moves = VllEnd.objects.filter(vll__in=lines, vll__moves__isnull=False).values("vll_id")
    return dict(moves.annotate(at=Max("vll__moves__left_at")).values_list("vll_id", "at"))


def _newest_interval() -> int:
    """Return the highest id of any interval. Intervals of locked lines that are written later have higher
    ids.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST_INTERVAL)
        return cursor.fetchone()[0] or 0


def _down_spans(routers: Iterable[int], span: Span) -> dict[int, list[Span]]:
    """Return, by router, the parts of that time in which its silences count as down."""
    found: dict[int, list[Span]] = {}
    silences = RouterSilence.objects.filter(
        Q(until__isnull=True) | Q(until__gt=span[0]), router__in=routers, since__lt=span[1]
    )
    for each in silences:
        spans = _from_json(each.down_spans)
        if each.counts_as_down:
            # The silence has continued since this was written.
            spans.append((spans[-1][1], max(spans[-1][1], span[1])))
        found.setdefault(each.router_id, []).extend(spans)
    return found


def _open_since(since: datetime) -> datetime:
    """Return ``since``, or the end of the last frozen month: earlier history does not change."""
    last = FrozenMonth.objects.aggregate(last=Max("month"))["last"]
    if last is None:
        return since
    _, frozen_until = month_span(last)
    return max(since, frozen_until)


def _as_json(spans: Iterable[Span]) -> list[list[str]]:
    return [[begin.isoformat(), end.isoformat()] for begin, end in spans]


def _from_json(spans: Iterable[Any]) -> list[Span]:
    return [(datetime.fromisoformat(begin), datetime.fromisoformat(end)) for begin, end in spans]


def _interval(row: OperInterval, turned: set[UUID]) -> Interval:
    judged = row.judged or (row.ended_at is None and row.vll_id in turned and row.status == OperStatus.DOWN)
    return Interval(row.status, row.began_at, row.ended_at, judged)


def _row(vll: UUID, interval: Interval) -> OperInterval:
    return OperInterval(
        vll_id=vll,
        status=interval.status,
        began_at=interval.began,
        ended_at=interval.ended,
        judged=interval.judged,
    )
