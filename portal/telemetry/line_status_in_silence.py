"""The judgement of a router's silence, and its effect on the status history of the lines on the router.

A router is silent if its agent sends no reports. While counters nevertheless show that its VPP forwards
(evidence), the status of its lines is unknown. If there is no evidence for longer than
LONGLINE_SILENCE_IS_DOWN_S, the lines count as down from the last evidence on. Counters that arrive later are
judged too, for example from an agent that was disconnected. The history of a line in a month can change as
long as the portal accepts samples of the month, but not after the month is frozen.

The cost of a judgement depends only on the new data, and not on the length of the silence. The roll-up
records which 5-minute buckets of a silence it counted (UnjudgedFiveMinutes). A judgement reads only these
buckets, in portions. It stores ``forwarded_spans`` for the router, and judged intervals for the lines on the
router. After the last portion, the judgement decides which time counts as down, and rewrites only the time
with a changed verdict.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max, Q

from portal.core.db.statements import rows_of
from portal.inventory.models import FRESH, RouterSilence
from portal.telemetry import router_silences
from portal.telemetry.buckets import counted_now
from portal.telemetry.models import FrozenMonth, OperInterval, UnjudgedFiveMinutes
from portal.telemetry.oper_status import oper_statuses_refresh
from portal.telemetry.partitioned_tables import FIVE_MINUTES
from portal.telemetry.rollups import REPORTING_DELAY, lock_roll_ups
from portal.telemetry.time_spans import Span, in_one_only, merged, month_span, within
from portal.vll.models import VllEnd
from portal.vll.operations.state_compare_and_swap import lines_lock
from portal.vll.states import OperStatus

log = logging.getLogger(__name__)

# The size of a portion: the number of 5-minute rows that one transaction reads, in about a second.
ROWS_TOGETHER = 200_000
# If more 5-minute buckets wait for the roll-up, it is too far behind to decide which lines are down.
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
# For each line on the router: the routers of its two ends.
Lines = Mapping[UUID, Mapping[str, int]]
Spans = dict[UUID, list[Span]]

# The counts of the lines on the router in some 5-minute buckets. Per line: when frames came out of either
# end, and when the line is evidence for the router. A line is evidence if the router's own agent counted it,
# or if frames came out at its end on another router.
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
# When frames came out of some lines. Each line has its own span.
_FORWARDED = """
SELECT five.vll_id, range_agg(tstzrange(five.start_at, five.start_at + interval '5 minutes'))
FROM unnest(%(vlls)s::uuid[], %(since)s::timestamptz[], %(until)s::timestamptz[])
     AS part (vll_id, since, until)
JOIN telemetry_five_minutes AS five ON five.vll_id = part.vll_id
     AND five.start_at > part.since - interval '5 minutes' AND five.start_at < part.until
WHERE five.a_out_packets > 0 OR five.z_out_packets > 0
GROUP BY five.vll_id
"""
# Completed 5-minute buckets of the router's lines that are not rolled up.
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
# MATERIALIZED: a plan could otherwise select once per row, and take more rows than the limit.
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
    """Judge a portion, unless another process does. Return whether portions are left."""
    _begin_again(silence_id, now)
    return _judge_a_portion(silence_id, now)


@transaction.atomic
def _begin_again(silence_id: int, now: datetime) -> None:
    """Mark all 5-minute buckets of a silence as unjudged, if it was never judged or is to be judged again."""
    unread = RouterSilence.objects.filter(Q(judge_again=True) | Q(judged_until=None), pk=silence_id)
    if not unread.exists():
        return
    with connection.cursor() as cursor:
        # Wait until a roll-up that does not know the silence has committed, so that its rows are read.
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
    forwarded = {vll: router_silences.spoken_for(span, spans, over=over) for vll, spans in forwarded.items()}
    silence.forwarded_spans = _as_json(merged([*_from_json(silence.forwarded_spans), *spoken]))
    # Lock all lines together, in the order that all transactions use.
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
    """Decide when the router was down, after the last portion, and unless the roll-up is far behind."""
    over = silence.until is not None
    spoken = router_silences.spoken_for(span, _from_json(silence.forwarded_spans), over=over)
    listening = router_silences.listened(*span)
    longest = timedelta(seconds=settings.LONGLINE_SILENCE_IS_DOWN_S)
    before = _from_json(silence.down_spans)
    down = router_silences.down_in(span, spoken, listened=listening, longest=longest)
    if newly := within(in_one_only(down, before), down):
        uncounted = _uncounted(silence.router_id, newly, now)
        if len(uncounted) > _MOST_UNCOUNTED:
            log.warning(
                "the roll-up is behind: the silence of a router is not judged",
                extra={"router": silence.router_id},
            )
            return
        if uncounted:
            speaking = _speaking_now(silence.router_id, lines, uncounted)
            spoken = merged([*spoken, *router_silences.spoken_for(span, speaking, over=over)])
            down = router_silences.down_in(span, spoken, listened=listening, longest=longest)
    changed = merged([*in_one_only(down, before), (max(silence.judged_until or span[0], span[0]), span[1])])
    silence.forwarded_at = spoken[-1][1] if spoken else None
    silence.down_spans = _as_json(down)
    silence.judged_until = span[1]
    counts_as_down = not over and bool(down) and down[-1][1] >= now - FRESH
    turns = counts_as_down != silence.counts_as_down
    silence.counts_as_down = counts_as_down
    # Save the verdict first. The next two calls read it: to update the status of lines, and for lines that
    # have a second silent router.
    silence.save(update_fields=_VERDICT)
    turned = oper_statuses_refresh(router_id=silence.router_id, now=now) if turns else set()
    _rewrite(span, lines, dict.fromkeys(lines, changed), {}, turned)


def _lines_on(router_id: int) -> Lines:
    """Return the lines with an end on the router. Each has the routers of its ends, by side."""
    here = VllEnd.objects.filter(port__router=router_id).values("vll")
    found: dict[UUID, dict[str, int]] = {}
    ends = VllEnd.objects.filter(vll__in=here).values_list("vll_id", "side", "port__router_id")
    for vll, side, router in ends:
        found.setdefault(vll, {})[side] = router
    return found


def _take(silence: RouterSilence, span: Span, most: int) -> tuple[list[datetime], bool]:
    """Remove at most ``most`` unjudged buckets of the silence from the list. Return their starts, and whether
    the list has more.
    """
    starts = sorted(start for (start,) in rows_of(_TAKE, {"silence": silence.pk, "most": most}))
    if silence.until is not None and (silence.judged_until or span[0]) < silence.until:
        # The silence is over. The verdict on its last whole bucket also applies to the rest of the silence
        # after the bucket.
        starts = sorted({*starts, router_silences.last_five_minutes(span)})
    return starts, silence.unjudged.exists()


def _counted(router_id: int, starts: Sequence[datetime]) -> tuple[Spans, list[Span]]:
    """Return, for the buckets at ``starts``, when each line forwarded, and when the router shows evidence."""
    if not starts:
        return {}, []
    parameters = {"router": router_id, "starts": list(starts), "first": starts[0], "last": starts[-1]}
    forwarded: Spans = {}
    spoken: set[Span] = set()
    for vll, out, speaks in rows_of(_COUNTED, parameters):
        if out is not None:
            forwarded[vll] = [(part.lower, part.upper) for part in out]
        spoken.update((part.lower, part.upper) for part in speaks or ())
    return forwarded, merged(spoken)


def _uncounted(router_id: int, spans: Sequence[Span], now: datetime) -> list[tuple[UUID, datetime]]:
    """Return line and start of the completed 5-minute buckets of this router that are not rolled up yet.

    Only buckets between the first and the last moment of ``spans`` are returned.
    """
    parameters: dict[str, Any] = {
        "router": router_id,
        "since": spans[0][0] - router_silences.BUCKET,
        "over": min(spans[-1][1], now - REPORTING_DELAY - router_silences.BUCKET),
        "most": _MOST_UNCOUNTED + 1,
    }
    return rows_of(_UNCOUNTED, parameters)


def _speaking_now(router_id: int, lines: Lines, uncounted: Collection[tuple[UUID, datetime]]) -> list[Span]:
    """Return the buckets with evidence for the router, among those that wait for the roll-up."""
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
                found.add((start, start + router_silences.BUCKET))
    return merged(found)


def _rewrite(
    span: Span, lines: Lines, touched: Mapping[UUID, Sequence[Span]], forwarded: Spans, turned: set[UUID]
) -> None:
    """Write the verdict into the history of these locked lines, within the spans in ``touched``.

    ``forwarded``: when each line forwarded, as found by this judgement. The results of earlier judgements are
    in the intervals. ``turned``: lines whose current status has just changed because of this verdict.
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
            for verdict in router_silences.verdicts_on(part, forwarded=up, down=down)
        ]
        after = router_silences.rewritten(before, verdicts)
        # Most of a long history does not change.
        kept, stored = set(after), {_interval(row, set()) for row in intervals}
        old += [row.pk for row in intervals if _interval(row, set()) not in kept]
        new += [
            OperInterval(vll_id=vll, status=i.status, began_at=i.began, ended_at=i.ended, judged=i.judged)
            for i in after
            if i not in stored
        ]
    OperInterval.objects.filter(pk__in=old).delete()
    OperInterval.objects.bulk_create(new, batch_size=1000)


def _newer(silence: RouterSilence, lines: Lines) -> Spans:
    """Return, by line, judged time with a newer interval: a status dated back to the last fresh report."""
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
    """Return, by line, when frames came out of it. Only the time in ``spans`` is read."""
    parts = [(vll, *span) for vll, of in spans.items() for span in of]
    if not parts:
        return {}
    vlls, since, until = (list(column) for column in zip(*parts, strict=True))
    return {
        vll: router_silences.spoken_for(silence, [(part.lower, part.upper) for part in found], over=over)
        for vll, found in rows_of(_FORWARDED, {"vlls": vlls, "since": since, "until": until})
    }


def _moved(lines: Lines) -> dict[UUID, datetime]:
    """Return, for each line that was ever moved, when one of its ends last moved."""
    moves = VllEnd.objects.filter(vll__in=lines, vll__moves__isnull=False).values("vll_id")
    return dict(moves.annotate(at=Max("vll__moves__left_at")).values_list("vll_id", "at"))


def _newest_interval() -> int:
    """Return the highest id of any interval, or 0. Later intervals of locked lines have higher ids."""
    [(newest,)] = rows_of(_NEWEST_INTERVAL)
    return newest or 0


def _down_spans(routers: Iterable[int], span: Span) -> dict[int, list[Span]]:
    """Return, by router, when its silences in ``span`` count as down. A part may reach beyond ``span``."""
    found: dict[int, list[Span]] = {}
    silences = RouterSilence.objects.filter(
        Q(until__isnull=True) | Q(until__gt=span[0]), router__in=routers, since__lt=span[1]
    )
    for each in silences:
        spans = _from_json(each.down_spans)
        if each.counts_as_down:
            # The silence has continued since its spans were stored.
            spans.append((spans[-1][1], max(spans[-1][1], span[1])))
        found.setdefault(each.router_id, []).extend(spans)
    return found


def _open_since(since: datetime) -> datetime:
    """Return the later of ``since`` and the end of the last frozen month. Earlier history does not change."""
    last = FrozenMonth.objects.aggregate(last=Max("month"))["last"]
    if last is None:
        return since
    _, frozen_until = month_span(last)
    return max(since, frozen_until)


def _as_json(spans: Iterable[Span]) -> list[list[str]]:
    return [[begin.isoformat(), end.isoformat()] for begin, end in spans]


def _from_json(spans: Iterable[Any]) -> list[Span]:
    return [(datetime.fromisoformat(begin), datetime.fromisoformat(end)) for begin, end in spans]


def _interval(row: OperInterval, turned: set[UUID]) -> router_silences.Interval:
    judged = row.judged or (row.ended_at is None and row.vll_id in turned and row.status == OperStatus.DOWN)
    return router_silences.Interval(row.status, row.began_at, row.ended_at, judged)
