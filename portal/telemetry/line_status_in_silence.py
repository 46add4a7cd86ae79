"""The verdict on a silence, and what it makes of the lines that end on its router.

As long as something speaks for the router's VPP, its lines are unknown; when nothing has for as long as
LONGLINE_SILENCE_IS_DOWN_S, they are down, back to the last that was heard. What is heard later, as of an
agent that was cut off, is judged again: an interval of a line may change while samples of it are accepted,
and not after its month is frozen.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q

from portal.inventory.models import RouterSilence
from portal.telemetry.agent_api_uptime import listened
from portal.telemetry.bucket_queries import five_minutes_of
from portal.telemetry.models import FrozenMonth, OperInterval
from portal.telemetry.silence_arithmetic import (
    BUCKET,
    Interval,
    down_in,
    rewritten,
    spoken_for,
    verdicts_on,
)
from portal.telemetry.time_spans import Span, merged, month_span
from portal.vll.models import VllEnd
from portal.vll.operations import oper_statuses_refresh
from portal.vll.operations.oper_status import FRESH, lines_lock
from portal.vll.states import OperStatus

_SPEAK = ("a_covered_ms", "z_covered_ms", "a_out_packets", "z_out_packets")
_OTHER = {"a": "z", "z": "a"}
Counted = dict[UUID, dict[datetime, tuple[float, ...]]]


@transaction.atomic
def silence_judge(*, silence_id: int, now: datetime) -> None:
    """Find out what speaks for a silent router, and write what follows into its lines' status and history."""
    silence = RouterSilence.objects.select_for_update().get(pk=silence_id)
    span = (silence.since, silence.until or now)
    lines = _lines_on(silence.router_id)
    counted = _counted(list(lines), span)
    spoken = spoken_for(
        span, _signs_of_life(silence.router_id, lines, counted), over=silence.until is not None
    )
    longest = timedelta(seconds=settings.LONGLINE_SILENCE_IS_DOWN_S)
    down = down_in(span, spoken, listened=listened(*span), longest=longest)
    silence.forwarded_at = spoken[-1][1] if spoken else None
    silence.down_spans = [[begin.isoformat(), end.isoformat()] for begin, end in down]
    counts_as_down = silence.until is None and bool(down) and down[-1][1] >= now - FRESH
    turns = counts_as_down != silence.counts_as_down
    silence.counts_as_down, silence.judge_again = counts_as_down, False
    silence.save(update_fields=["forwarded_at", "down_spans", "counts_as_down", "judge_again"])
    turned = oper_statuses_refresh(router_id=silence.router_id, now=now) if turns else set()
    _rewrite(silence, span, lines, counted, turned)


def _lines_on(router_id: int) -> dict[UUID, dict[str, int]]:
    """By line that ends there, the routers of both of its ends."""
    here = VllEnd.objects.filter(port__router=router_id).values("vll")
    found: dict[UUID, dict[str, int]] = {}
    ends = VllEnd.objects.filter(vll__in=here).values_list("vll_id", "side", "port__router_id")
    for vll, side, router in ends:
        found.setdefault(vll, {})[side] = router
    return found


def _counted(vlls: list[UUID], span: Span) -> Counted:
    """By line and 5 minutes, what its ends counted (``_SPEAK``)."""
    found: Counted = {}
    since, until = int(span[0].timestamp()), int(span[1].timestamp())
    step = int(BUCKET.total_seconds())
    starts = range(since - since % step, until + 1, step)
    for vll, start, *values, _simulated in five_minutes_of(vlls, starts, (*_SPEAK, "simulated")):
        found.setdefault(vll, {})[start] = tuple(value or 0 for value in values)
    return found


def _signs_of_life(router_id: int, lines: dict[UUID, dict[str, int]], counted: Counted) -> set[datetime]:
    """The 5 minutes in which the router's VPP forwarded: it counted, or its frames came out elsewhere."""
    return {
        start
        for vll, buckets in counted.items()
        for start, values in buckets.items()
        for side, router in lines[vll].items()
        if router == router_id
        and (
            values[_SPEAK.index(f"{side}_covered_ms")]
            or (
                lines[vll].get(_OTHER[side]) != router_id
                and values[_SPEAK.index(f"{_OTHER[side]}_out_packets")]
            )
        )
    }


def _rewrite(
    silence: RouterSilence,
    span: Span,
    lines: dict[UUID, dict[str, int]],
    counted: Counted,
    turned: set[UUID],
) -> None:
    """Write into lines' history what the silence was; the status of ``turned`` follows from this verdict."""
    lines_lock(lines)
    down_on = _down_spans({router for ends in lines.values() for router in ends.values()}, span)
    since = _open_since(span[0])
    moved = dict(
        VllEnd.objects.filter(vll__in=lines, vll__moves__isnull=False)
        .values("vll_id")
        .annotate(at=Max("vll__moves__left_at"))
        .values_list("vll_id", "at")
    )
    rows: dict[UUID, list[OperInterval]] = {}
    reaching = OperInterval.objects.filter(
        Q(ended_at__isnull=True) | Q(ended_at__gt=span[0]), vll_id__in=lines, began_at__lte=span[1]
    )
    for row in reaching.order_by("began_at", "pk"):
        rows.setdefault(row.vll_id, []).append(row)
    over = silence.until is not None
    new: list[OperInterval] = []
    old: list[int] = []
    for vll, intervals in rows.items():
        mine = (max(since, moved.get(vll, since)), span[1])
        if mine[0] >= mine[1]:
            continue
        forwarded = spoken_for(span, _starts_forwarded(counted.get(vll, {})), over=over)
        down = merged(each for router in lines[vll].values() for each in down_on.get(router, []))
        before = [_interval(row, turned) for row in intervals]
        after = rewritten(before, verdicts_on(mine, forwarded=forwarded, down=down))
        if after != before or vll in turned:
            old += [row.pk for row in intervals]
            new += [_row(vll, interval) for interval in after]
    OperInterval.objects.filter(pk__in=old).delete()
    OperInterval.objects.bulk_create(new, batch_size=1000)


def _starts_forwarded(buckets: dict[datetime, tuple[float, ...]]) -> set[datetime]:
    """The 5 minutes in which frames came out of the line, at either end."""
    out = [_SPEAK.index("a_out_packets"), _SPEAK.index("z_out_packets")]
    return {start for start, values in buckets.items() if any(values[at] for at in out)}


def _down_spans(routers: Iterable[int], span: Span) -> dict[int, list[Span]]:
    """By router, in which parts of that time its silences count as down."""
    found: dict[int, list[Span]] = {}
    silences = RouterSilence.objects.filter(
        Q(until__isnull=True) | Q(until__gt=span[0]), router__in=routers, since__lt=span[1]
    )
    for each in silences:
        spans = [(datetime.fromisoformat(a), datetime.fromisoformat(z)) for a, z in each.down_spans]
        if each.counts_as_down:
            # It has gone on since that was written.
            spans.append((spans[-1][1], max(spans[-1][1], span[1])))
        found.setdefault(each.router_id, []).extend(spans)
    return found


def _open_since(since: datetime) -> datetime:
    """``since``, or the end of the last frozen month: what was reported of that stays."""
    last = FrozenMonth.objects.aggregate(last=Max("month"))["last"]
    if last is None:
        return since
    _, frozen_until = month_span(last)
    return max(since, frozen_until)


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
