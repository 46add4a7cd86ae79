"""Freezing the 95th percentiles of a calendar month, before its 5 minutes are dropped."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from portal.telemetry.buckets import SIDES, buckets_of
from portal.telemetry.models import MonthlyPercentile, OperInterval
from portal.telemetry.queries import P95_BUCKET_S, expected_of, percentiles
from portal.vll.models import Vll
from portal.vll.states import TERMINAL_LIFECYCLES

# Samples of the last hours may still come; later than their retention none is accepted.
GRACE = timedelta(days=1)


def month_freeze(*, now: datetime) -> int:
    """Freeze the last whole month (UTC), a day after its end; how many ends. Running it again adds none."""
    month = (now - GRACE).astimezone(UTC).date().replace(day=1) - timedelta(days=1)
    since = datetime(month.year, month.month, 1, tzinfo=UTC)
    until = datetime(month.year, month.month, month.day, tzinfo=UTC) + timedelta(days=1)
    done = MonthlyPercentile.objects.filter(month=since.date()).values("vll_id")
    vlls = Vll.objects.filter(created_at__lt=until).exclude(pk__in=done)
    return sum(_freeze(vll, since, until, now) for vll in vlls.iterator(chunk_size=500))


def _freeze(vll: Vll, since: datetime, until: datetime, now: datetime) -> int:
    end = _out_of_service_at(vll)
    if end is not None and end <= since:
        return 0
    counted, simulated = buckets_of(vll, since, until, P95_BUCKET_S)
    expected = expected_of(vll, since, min(until, end or until), P95_BUCKET_S, now)
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
    return len(MonthlyPercentile.objects.bulk_create(rows, ignore_conflicts=True))


def _out_of_service_at(vll: Vll) -> datetime | None:
    """When it left service for good; None while it is in service, or may come back."""
    if vll.lifecycle not in TERMINAL_LIFECYCLES:
        return None
    last = OperInterval.objects.filter(vll_id=vll.pk).order_by("-began_at").first()
    return vll.created_at if last is None else last.ended_at


def frozen_percentiles(*, vll_id: UUID) -> list[dict[str, object]]:
    """All frozen months of a VLL, newest first; rates in bit/s."""
    months: dict[date, dict[str, object]] = {}
    rows = MonthlyPercentile.objects.filter(vll_id=vll_id).order_by("-month", "side")
    for row in rows:
        entry = months.setdefault(
            row.month,
            {
                "month": f"{row.month:%Y-%m}",
                "unit": "bit/s",
                "frozen_at": row.frozen_at,
                "simulated": row.simulated,
            },
        )
        entry[f"{row.side}_end"] = {
            "in": row.in_bps,
            "out": row.out_bps,
            "max": row.max_bps,
            "counted": row.counted,
            "missing": row.missing,
        }
    return list(months.values())
