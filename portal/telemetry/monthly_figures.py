"""A line month by month: op-status availability, passive frame loss, and the frozen 95th percentiles."""

from datetime import UTC, datetime, timedelta
from typing import Any

from portal.telemetry.availability import availability
from portal.telemetry.frame_loss import frame_loss, frame_loss_by_month
from portal.telemetry.month_close import frozen_percentiles, undecided_of
from portal.vll.models import Vll

SHOWN = 12


def months_of(*, vll: Vll, now: datetime) -> list[dict[str, Any]]:
    """The calendar months (UTC) since the VLL was made, the current one first, at most 12.

    ``month`` as 2026-11; ``availability`` and ``loss`` as in their own answers; ``p95`` as it was frozen,
    None until no sample of the month can come any more; ``undecided``: how many 5 minutes of each side are in
    quarantine and may still be added. The current month's loss is compared by 5 minutes,
    the others' by hours.
    """
    starts = _starts(vll.created_at.astimezone(UTC), now.astimezone(UTC))
    times = availability(vll=vll, since=starts[0], until=now, period="month", now=now)["periods"]
    losses = []
    if len(starts) > 1:
        losses = frame_loss_by_month(vll=vll, months=starts[:-1], until=starts[-1], now=now)
    losses.append(frame_loss(vll=vll, since=starts[-1], until=now, now=now))
    undecided = undecided_of([vll.pk]).get(vll.pk, {})
    frozen = {entry["month"]: entry for entry in frozen_percentiles(vll_id=vll.pk, undecided=undecided)}
    found = [
        {
            "month": f"{start:%Y-%m}",
            "availability": time,
            "loss": loss,
            "p95": frozen.get(f"{start:%Y-%m}"),
            "undecided": undecided.get(start.date(), {}),
        }
        for start, time, loss in zip(starts, times, losses, strict=True)
    ]
    return found[::-1]


def _starts(made: datetime, now: datetime) -> list[datetime]:
    """The first moments of the months from ``made`` to ``now``, oldest first."""
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    starts = [month]
    while len(starts) < SHOWN and month > made:
        month = (month - timedelta(days=1)).replace(day=1)
        starts.append(month)
    return starts[::-1]
