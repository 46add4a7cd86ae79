"""Freeze a calendar month: store its 95th percentiles permanently, before its 5-minute rows are dropped.

A month is frozen on schedule, even while samples of it are in quarantine. Pages and the API show how many
5-minute buckets are undecided. If the NOC accepts samples later, a correction is stored next to the frozen
values.
"""

from collections import defaultdict
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Count

from portal.core.db.advisory_locks import AdvisoryLock
from portal.core.db.each_row import each_row
from portal.events.outbox import announce
from portal.telemetry.bucket_queries import SIDES, buckets_of
from portal.telemetry.models import FrozenMonth, MonthlyPercentile, Quarantine, QuarantinedFiveMinutes
from portal.telemetry.partitions import months_unfrozen
from portal.telemetry.rollup_tables import SAMPLES
from portal.telemetry.throughput import P95_BUCKET_S, expected_of, percentiles
from portal.telemetry.time_in_service import service_time
from portal.telemetry.time_spans import month_span
from portal.vll.models import Vll

# Late samples of a month are accepted until SAMPLES.retention after its end, because agents keep samples that
# they cannot send. The grace period is for a report that the portal is storing when this time ends.
GRACE = timedelta(hours=1)
_FIGURES = ("in_bps", "out_bps", "max_bps", "counted", "missing", "simulated")
# By month: the number of 5-minute buckets of each side that wait for a decision.
Undecided = dict[date, dict[str, int]]


def months_freeze(*, now: datetime) -> int:
    """Freeze each month (UTC) for which no samples are accepted any more. Return the number of frozen ends.

    A second call adds nothing. The call freezes all such months, because the portal may have been down for
    several months.
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


@transaction.atomic
def _freeze(vll: Vll, *, since: datetime, until: datetime, now: datetime) -> int:
    _lock()
    rows = _measured(vll, since, until, now)
    return len(MonthlyPercentile.objects.bulk_create(rows, ignore_conflicts=True))


@transaction.atomic
def month_correct(*, vll: Vll, month: date, now: datetime) -> bool:
    """Store a correction of a line's frozen month if its 5-minute rows now give other values.

    Return whether a correction was stored.
    """
    _lock()
    frozen = newest_of_month(month, [vll.pk]).get(vll.pk)
    if frozen is None:
        return False
    since, until = month_span(month)
    rows = _measured(vll, since, until, now)
    if all(_figures(row) == _figures(frozen[row.side]) for row in rows if row.side in frozen):
        return False
    for row in rows:
        row.correction = 1 + max(each.correction for each in frozen.values())
    MonthlyPercentile.objects.bulk_create(rows)
    data = {"month": f"{month:%Y-%m}"}
    announce("vll.month_corrected", now=now, customer_id=vll.customer_id, vll_id=vll.pk, data=data)
    return True


def _lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [AdvisoryLock.MONTHS])


def _figures(row: MonthlyPercentile) -> list[Any]:
    return [getattr(row, name) for name in _FIGURES]


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
    """Return the current values of a month by line and side: the last correction, or the first freeze."""
    found: dict[UUID, dict[str, MonthlyPercentile]] = defaultdict(dict)
    for row in MonthlyPercentile.objects.filter(month=month, vll_id__in=vlls).order_by("correction"):
        found[row.vll_id][row.side] = row
    return dict(found)


def undecided_of(vlls: list[UUID]) -> dict[UUID, Undecided]:
    """Return, by line and month, how many 5-minute buckets of each side are in quarantine and may still be
    added.
    """
    waiting = QuarantinedFiveMinutes.objects.filter(
        vll_id__in=vlls,
        accepted=False,
        quarantine__state__in=(Quarantine.State.UNDECIDED, Quarantine.State.ACCEPTED),
    )
    found: dict[UUID, Undecided] = {}
    for vll, month, side, number in waiting.values_list("vll_id", "quarantine__month", "side").annotate(
        Count("start_at", distinct=True)
    ):
        found.setdefault(vll, {}).setdefault(month, {})[side] = number
    return found


def frozen_percentiles(*, vll_id: UUID, undecided: Undecided | None = None) -> list[dict[str, object]]:
    """Return all frozen months of a VLL, newest first. Rates are in bit/s.

    Each end has ``undecided``, the number of 5-minute buckets in quarantine. ``earlier`` contains the values
    before each correction, newest first. The parameter ``undecided`` is the result of ``undecided_of``, if
    the caller has it already.
    """
    if undecided is None:
        undecided = undecided_of([vll_id]).get(vll_id, {})
    months: dict[date, dict[int, dict[str, MonthlyPercentile]]] = {}
    rows = MonthlyPercentile.objects.filter(vll_id=vll_id).order_by("-month", "-correction", "side")
    for row in rows:
        months.setdefault(row.month, {}).setdefault(row.correction, {})[row.side] = row
    return [
        {"month": f"{month:%Y-%m}", "unit": "bit/s"}
        | _month_facts(list(versions.values()), undecided.get(month, {}))
        for month, versions in months.items()
    ]


def _month_facts(
    versions: list[dict[str, MonthlyPercentile]], undecided: dict[str, int]
) -> dict[str, object]:
    facts = _version(versions[0])
    for side in versions[0]:
        facts[f"{side}_end"] |= {"undecided": undecided.get(side, 0)}
    replaced = [_version(each) for each in versions]
    return facts | {
        "earlier": [
            was | {"corrected_at": by["frozen_at"]} for was, by in zip(replaced[1:], replaced, strict=False)
        ]
    }


def _version(sides: dict[str, MonthlyPercentile]) -> dict[str, Any]:
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
