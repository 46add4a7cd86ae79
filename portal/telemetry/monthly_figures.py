"""The figures of a line by calendar month: availability, frame loss, and 95th percentiles of the traffic.

The frame loss is passive, that is, measured with the customer's own frames. The percentiles are those of the
5-minute rates. When no more samples of a month are accepted, the portal stores its percentiles permanently,
before the 5-minute rows are dropped: the month is then *frozen*.
"""

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from portal.core.background_work import each_row
from portal.telemetry.availability import availability, reaching
from portal.telemetry.buckets import SIDES, buckets_of
from portal.telemetry.line_losses import frame_loss, frame_loss_by_month
from portal.telemetry.models import FrozenMonth, MonthlyPercentile
from portal.telemetry.partitioned_tables import SAMPLES, months_unfrozen
from portal.telemetry.throughput import P95_BUCKET_S, expected_of, percentiles
from portal.telemetry.time_spans import month_span, service_time
from portal.vll.models import Vll

# Late samples of a month are accepted until SAMPLES.retention after its end, because agents keep samples that
# they cannot send. The grace period is for a report that the portal is storing when this time ends.
GRACE = timedelta(hours=1)


def months_freeze(*, now: datetime) -> int:
    """Freeze each month (UTC) for which no samples are accepted any more. Return the number of frozen ends.

    A second call adds nothing. All such months are frozen: the portal may have been down for several.
    """
    frozen = 0
    for month in months_unfrozen():
        since, until = month_span(month)
        if now < until + SAMPLES.retention + GRACE:
            break
        done = MonthlyPercentile.objects.filter(month=month).values("vll_id")
        vlls = Vll.objects.filter(created_at__lt=until).exclude(pk__in=done)
        # If one line fails, the others are frozen and the month stays open for the next call.
        rows = vlls.iterator(chunk_size=500)
        frozen += sum(
            each_row(rows, partial(_freeze, since=since, until=until, now=now), what="a line's month")
        )
        FrozenMonth.objects.get_or_create(month=month, defaults={"frozen_at": now})
    return frozen


def _freeze(vll: Vll, *, since: datetime, until: datetime, now: datetime) -> int:
    rows = _measured(vll, since, until, now)
    return len(MonthlyPercentile.objects.bulk_create(rows, ignore_conflicts=True))


def _measured(vll: Vll, since: datetime, until: datetime, now: datetime) -> list[MonthlyPercentile]:
    """Return the percentiles of both ends, from the 5-minute rows; no rows if the line was out of service."""
    served = service_time(vll)
    if served.began is None or served.began >= until or (served.ended and served.ended <= since):
        return []
    counted, simulated = buckets_of(vll, since, until, P95_BUCKET_S)
    expected = expected_of(served, since, until, P95_BUCKET_S, now)
    rows = []
    for side in SIDES:
        found = percentiles(counted[side], expected)
        rows.append(
            MonthlyPercentile(
                vll_id=vll.pk,
                side=side,
                month=since.date(),
                in_bps=found["in"],
                out_bps=found["out"],
                max_bps=found["max"],
                counted=len(counted[side]),
                missing=found["missing"] or 0,
                simulated=simulated,
                frozen_at=now,
            )
        )
    return rows


def newest_of_month(month: date, vlls: list[UUID]) -> dict[UUID, dict[str, MonthlyPercentile]]:
    """Return the values of a month by line and side.

    Release 0.1.0 could store corrections of a month. The last correction applies.
    """
    found: dict[UUID, dict[str, MonthlyPercentile]] = defaultdict(dict)
    for row in MonthlyPercentile.objects.filter(month=month, vll_id__in=vlls).order_by("correction"):
        found[row.vll_id][row.side] = row
    return dict(found)


def frozen_percentiles(*, vll_id: UUID) -> list[dict[str, Any]]:
    """Return all frozen months of a VLL, newest first. Rates are in bit/s."""
    months: dict[date, dict[str, MonthlyPercentile]] = defaultdict(dict)
    for row in MonthlyPercentile.objects.filter(vll_id=vll_id).order_by("-month", "correction", "side"):
        months[row.month][row.side] = row
    return [{"month": f"{month:%Y-%m}", "unit": "bit/s"} | _facts(sides) for month, sides in months.items()]


def _facts(sides: dict[str, MonthlyPercentile]) -> dict[str, Any]:
    one = next(iter(sides.values()))
    return {"frozen_at": one.frozen_at, "simulated": one.simulated} | {
        f"{side}_end": {
            "in": row.in_bps,
            "out": row.out_bps,
            "max": row.max_bps,
            "counted": row.counted,
            "missing": row.missing,
        }
        for side, row in sides.items()
    }


SHOWN = 12


def months_of(*, vll: Vll, now: datetime) -> list[dict[str, Any]]:
    """Return the calendar months (UTC) since the VLL was created, the current one first, at most 12.

    * ``month``: such as 2026-11.
    * ``availability`` and ``loss``: as in the responses of ``/availability`` and ``/loss``. The loss of the
      current month is computed from buckets of 5 minutes, the loss of earlier months from buckets of an hour.
    * ``p95``: the percentiles of both ends; None until the month is frozen.
    """
    return _figures(vll, _starts(vll.created_at.astimezone(UTC), now.astimezone(UTC)), now, now)[::-1]


def month_of(*, vll: Vll, month: date, now: datetime) -> dict[str, Any]:
    """Return the entry of ``months_of`` for the month that begins on ``month``, and has begun."""
    since, until = month_span(month)
    return _figures(vll, [since], min(until, now), now)[0]


def in_service_in(vlls: QuerySet[Vll], month: date) -> QuerySet[Vll]:
    """Return the VLLs that were in service at any time of the calendar month that begins on ``month``."""
    return vlls.filter(Exists(reaching(*month_span(month)).filter(vll_id=OuterRef("pk"))))


def _figures(vll: Vll, starts: list[datetime], until: datetime, now: datetime) -> list[dict[str, Any]]:
    """Return the figures of the months from ``starts``, oldest first. The last month ends at ``until``."""
    times = availability(vll=vll, since=starts[0], until=until, period="month", now=now)["periods"]
    over = starts if month_span(starts[-1])[1] <= now else starts[:-1]
    losses = []
    if over:
        ends = month_span(over[-1])[1]
        losses = frame_loss_by_month(vll=vll, months=over, until=ends, now=now)
    if len(over) < len(starts):
        losses.append(frame_loss(vll=vll, since=starts[-1], until=until, now=now))
    frozen = {entry["month"]: entry for entry in frozen_percentiles(vll_id=vll.pk)}
    return [
        {
            "month": f"{start:%Y-%m}",
            "availability": time,
            "loss": loss,
            "p95": frozen.get(f"{start:%Y-%m}"),
        }
        for start, time, loss in zip(starts, times, losses, strict=True)
    ]


def _starts(made: datetime, now: datetime) -> list[datetime]:
    """Return the first moments of the months from ``made`` to ``now``, oldest first; at most SHOWN months."""
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    starts = [month]
    while len(starts) < SHOWN and month > made:
        month = (month - timedelta(days=1)).replace(day=1)
        starts.append(month)
    return starts[::-1]
