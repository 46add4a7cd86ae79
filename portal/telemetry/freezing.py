"""Freezing the 95th percentiles of a calendar month, before its 5 minutes are dropped."""

from datetime import date, datetime, timedelta
from uuid import UUID

from portal.telemetry.buckets import SIDES, buckets_of
from portal.telemetry.models import FrozenMonth, MonthlyPercentile
from portal.telemetry.partitions import months_unfrozen
from portal.telemetry.queries import P95_BUCKET_S, expected_of, percentiles
from portal.telemetry.service_time import service_time
from portal.telemetry.spans import month_span
from portal.telemetry.tables import SAMPLES
from portal.vll.models import Vll

# Agents keep what they counted while they cannot send it, and a sample is accepted for as long as its like
# are stored. This is for a report that is being taken in at that moment.
GRACE = timedelta(hours=1)


def months_freeze(*, now: datetime) -> int:
    """Freeze each whole month (UTC) that no sample can join any more; how many ends. Again it adds none.

    Not the last one alone: the portal may have been away over the end of several.
    """
    frozen = 0
    for month in months_unfrozen():
        since, until = month_span(month)
        if now < until + SAMPLES.retention + GRACE:
            break
        done = MonthlyPercentile.objects.filter(month=month).values("vll_id")
        vlls = Vll.objects.filter(created_at__lt=until).exclude(pk__in=done)
        frozen += sum(_freeze(vll, since, until, now) for vll in vlls.iterator(chunk_size=500))
        FrozenMonth.objects.get_or_create(month=month, defaults={"frozen_at": now})
    return frozen


def _freeze(vll: Vll, since: datetime, until: datetime, now: datetime) -> int:
    served = service_time(vll)
    if served.began is None or served.began >= until or (served.ended and served.ended <= since):
        return 0
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
    return len(MonthlyPercentile.objects.bulk_create(rows, ignore_conflicts=True))


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
