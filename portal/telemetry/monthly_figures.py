"""The figures of a line by calendar month: availability, frame loss, and 95th percentiles of the traffic.

The frame loss is passive, that is, measured with the customer's own frames. The percentiles are those of the
5-minute rates. When no more samples of a month are accepted, the portal stores its percentiles permanently:
the month is then *frozen*.
"""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from portal.telemetry.availability import availability, reaching
from portal.telemetry.line_frame_loss import frame_loss, frame_loss_by_month
from portal.telemetry.month_close import frozen_percentiles
from portal.telemetry.time_spans import month_span
from portal.vll.models import Vll

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
    """Return the entry of ``months_of`` for the calendar month that begins on ``month``.

    The month must have begun.
    """
    since, until = month_span(month)
    return _figures(vll, [since], min(until, now), now)[0]


def in_service_in(vlls: QuerySet[Vll], month: date) -> QuerySet[Vll]:
    """Return the VLLs that were in service at any time of the calendar month that begins on ``month``."""
    return vlls.filter(Exists(reaching(*month_span(month)).filter(vll_id=OuterRef("pk"))))


def _figures(vll: Vll, starts: list[datetime], until: datetime, now: datetime) -> list[dict[str, Any]]:
    """Return the figures of the months that begin at ``starts``, oldest first. The last one ends at
    ``until``.
    """
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
