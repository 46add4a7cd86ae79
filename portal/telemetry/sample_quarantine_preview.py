"""The NOC's preview of a quarantine: its lines, and how acceptance would change the month of each line."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import BigIntegerField, Count, ExpressionWrapper, F, Min, OuterRef, QuerySet, Subquery

from portal.core.clock import to_time
from portal.telemetry.bucket_queries import SIDES, five_minutes_of, starts_of
from portal.telemetry.line_frame_loss import clocks_apart_s, compare
from portal.telemetry.models import Quarantine, QuarantinedFiveMinutes
from portal.telemetry.rates_and_percentiles import Bucket
from portal.telemetry.rollups import COLUMNS
from portal.telemetry.sample_quarantine_accept import fitting
from portal.telemetry.throughput import P95_BUCKET_S, expected_of, percentiles
from portal.telemetry.time_in_service import ServiceTime, service_time
from portal.telemetry.time_spans import month_span
from portal.vll.models import Vll

# Maps the rollups' columns to the quarantine's columns with the same count. The names of the rollups' columns
# are without the side.
_SOURCES = {
    **{
        name: name
        for way in ("in", "out", "conform", "exceed", "violate")
        for name in (f"{way}_bytes", f"{way}_packets")
    },
    "covered_ms": "covered_ms",
    "policed_ms": "covered_ms",
}
_POLICED = ("policed_ms", "conform", "exceed", "violate")
# The counts of a line by the start of the 5-minute bucket (epoch s): the values by column name.
Counted = dict[int, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class MonthFigures:
    """The figures of a line in one month.

    ``p95``: by side, the percentiles ``in``, ``out`` and ``max`` (bit/s), and the numbers of ``counted`` and
    ``missing`` 5-minute buckets. ``loss``: the result of ``frame_loss``, with 5-minute buckets.
    """

    p95: dict[str, dict[str, int | None]]
    loss: dict[str, Any]


@dataclass(frozen=True, slots=True)
class MonthPreview:
    """The effect of acceptance on the month of a line.

    ``samples``: the number of quarantined samples by side. ``added`` and ``left_out``: the numbers of
    5-minute buckets by side. ``before`` and ``after``: the figures without and with the samples. They are
    None after the decision, and if the time of the samples is unknown.
    """

    vll: Vll
    samples: dict[str, int]
    added: dict[str, int]
    left_out: dict[str, int]
    before: MonthFigures | None = None
    after: MonthFigures | None = None


def quarantines() -> QuerySet[Quarantine]:
    """Return all quarantines with their routers and deciding users.

    ``lines``: the number of lines. ``newest_first``: a number that sorts new quarantines first.
    """
    rows = Quarantine.objects.select_related("router", "decided_by")
    return rows.annotate(
        lines=Count("ends__vll_id", distinct=True),
        newest_first=ExpressionWrapper(-F("pk"), output_field=BigIntegerField()),
    )


def lines_of(quarantine: Quarantine) -> QuerySet[Vll]:
    """Return the lines of a quarantine. ``place``: a number to sort the lines by, for paging."""
    first = quarantine.ends.filter(vll_id=OuterRef("pk")).values("vll_id").annotate(first=Min("pk"))
    lines = Vll.objects.filter(pk__in=quarantine.ends.values("vll_id")).select_related("customer")
    placed: QuerySet[Vll] = lines.annotate(place=Subquery(first.values("first")))
    return placed


def span_of(quarantine: Quarantine) -> tuple[datetime, datetime] | None:
    """Return the corrected times of the first and the last sample of a quarantine; None if unknown."""
    if quarantine.month is None:
        return None
    first, last = (to_time(at + quarantine.offset_ms) for at in (quarantine.first_ms, quarantine.last_ms))
    return first, last


def month_previews(*, quarantine: Quarantine, vlls: Sequence[Vll], now: datetime) -> list[MonthPreview]:
    """Return the effect of acceptance on the month of each of these lines.

    Before the decision, the effect is computed. After acceptance, the effect is only the stored number of
    added 5-minute buckets.
    """
    ends = list(quarantine.ends.filter(vll_id__in=[vll.pk for vll in vlls]))
    samples, added, left_out = (
        {vll.pk: {end.side: getattr(end, name) for end in ends if end.vll_id == vll.pk} for vll in vlls}
        for name in ("samples", "added", "left_out")
    )
    if quarantine.state != Quarantine.State.UNDECIDED or quarantine.month is None:
        return [MonthPreview(vll, samples[vll.pk], added[vll.pk], left_out[vll.pk]) for vll in vlls]
    since, until = month_span(quarantine.month)
    starts = starts_of(since, until, P95_BUCKET_S)
    pks = [vll.pk for vll in vlls]
    before = _counted(pks, starts)
    found, apart_s = fitting(quarantine, pks, starts), clocks_apart_s(pks)
    after = _with(before, quarantine, pks, found.fits)
    previews = []
    for vll in vlls:
        served = service_time(vll)
        would_be, would_not = (
            {side: sum(place[:2] == (vll.pk, side) for place in places) for side in samples[vll.pk]}
            for places in (found.fits, found.left_out)
        )
        previews.append(
            MonthPreview(
                vll,
                samples[vll.pk],
                would_be,
                would_not,
                *(
                    _figures(served, counted[vll.pk], since, until, now, apart_s[vll.pk])
                    for counted in (before, after)
                ),
            )
        )
    return previews


def _counted(vlls: Collection[UUID], starts: range) -> dict[UUID, Counted]:
    found: dict[UUID, Counted] = {vll: {} for vll in vlls}
    for vll, start, *values in five_minutes_of(vlls, starts, COLUMNS):
        found[vll][int(start.timestamp())] = dict(zip(COLUMNS, values, strict=True))
    return found


def _with(
    before: dict[UUID, Counted],
    quarantine: Quarantine,
    vlls: Collection[UUID],
    fits: set[tuple[UUID, str, datetime]],
) -> dict[UUID, Counted]:
    """Return a copy of ``before`` with the quarantined counts that would be added (``fits``)."""
    after = {vll: {start: dict(row) for start, row in counted.items()} for vll, counted in before.items()}
    waiting = QuarantinedFiveMinutes.objects.filter(quarantine=quarantine, vll_id__in=vlls, accepted=False)
    for each in waiting:
        if (each.vll_id, each.side, each.start_at) not in fits:
            continue
        counted = after[each.vll_id]
        row = counted.setdefault(
            int(each.start_at.timestamp()),
            dict.fromkeys(COLUMNS) | {"a_covered_ms": 0, "z_covered_ms": 0, "simulated": False},
        )
        for name, source in _SOURCES.items():
            if each.policed or not name.startswith(_POLICED):
                column = f"{each.side}_{name}"
                row[column] = (row[column] or 0) + getattr(each, source)
        for way, counted_most in (
            ("in", each.in_packets - (each.violate_packets or 0)),
            ("out", each.out_packets),
        ):
            most = f"{each.side}_{way}_most"
            row[most] = max(row[most] or 0, counted_most)
        row["simulated"] = row["simulated"] or each.simulated
    return after


def _figures(
    served: ServiceTime,
    counted: Counted,
    since: datetime,
    until: datetime,
    now: datetime,
    apart_s: float,
) -> MonthFigures:
    expected = expected_of(served, since, until, P95_BUCKET_S, now)
    p95 = {}
    for side in SIDES:
        buckets = {
            start: Bucket(
                row[f"{side}_in_bytes"] * 8, row[f"{side}_out_bytes"] * 8, row[f"{side}_covered_ms"] / 1000
            )
            for start, row in counted.items()
            if row[f"{side}_covered_ms"]
        }
        p95[side] = percentiles(buckets, expected) | {"counted": len(buckets)}
    return MonthFigures(p95, compare(served, counted, since, until, P95_BUCKET_S, now, apart_s))
