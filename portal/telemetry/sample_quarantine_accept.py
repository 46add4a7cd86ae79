"""Addition of accepted samples to the 5-minute buckets of their lines, and corrections of frozen months.

No time is counted twice at an end. The portal adds the quarantined counts of a 5-minute bucket only if they
and the existing counts together cover at most 5 minutes. Otherwise it leaves the quarantined counts out. Ends
without quarantined counts do not change. While samples of the bucket are still stored, the roll-up includes
the accepted counts whenever it counts the bucket again. If the samples are no longer stored, the accepted
counts are added once (rollups.py).
"""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F, Sum
from django.db.models.functions import TruncDate

from portal.core.db.each_row import each_row
from portal.telemetry.bucket_queries import five_minutes_of
from portal.telemetry.models import Quarantine, QuarantinedEnd, QuarantinedFiveMinutes
from portal.telemetry.month_close import month_correct
from portal.telemetry.rollup_tables import FIVE_MINUTES, SAMPLES
from portal.telemetry.rollups import add_accepted, lock_roll_ups, mark_stale
from portal.telemetry.sample_quarantine import TOO_OLD
from portal.vll.models import Vll

# The number of lines that one transaction handles, for one day.
_LINES = 200
_STEP = timedelta(seconds=FIVE_MINUTES.step_s)
_STEP_MS = FIVE_MINUTES.step_s * 1000

# A line, a side, and the start of a 5-minute bucket.
Place = tuple[UUID, str, datetime]


@dataclass(frozen=True, slots=True)
class Fitting:
    """The quarantined 5-minute buckets that can be added, and those that must be left out."""

    fits: set[Place]
    left_out: set[Place]


def fitting(quarantine: Quarantine, vlls: Collection[UUID], days: range) -> Fitting:
    """Return which quarantined 5-minute buckets of these lines can be added, and which must be left out.

    ``days``: the starts (epoch s) of the buckets to compare.
    """
    since, until = (datetime.fromtimestamp(at, tz=UTC) for at in (days.start, days.stop))
    waiting = QuarantinedFiveMinutes.objects.filter(
        quarantine=quarantine, vll_id__in=vlls, start_at__gte=since, start_at__lt=until, accepted=False
    )
    covers = waiting.values_list("vll_id", "side", "start_at").annotate(covered=Sum("covered_ms"))
    counted: dict[Place, int] = {}
    for vll, start, a_ms, z_ms in five_minutes_of(vlls, days, ("a_covered_ms", "z_covered_ms")):
        counted[vll, "a", start], counted[vll, "z", start] = a_ms, z_ms
    fits: set[Place] = set()
    left_out: set[Place] = set()
    for vll, side, start, covered_ms in covers:
        place = (vll, side, start)
        known_ms = counted.get(place, 0)
        # A sample that arrives days late may already be stored: its agent may have been killed before it
        # noted the portal's response.
        room_ms = 0 if known_ms and quarantine.reason == TOO_OLD else _STEP_MS - known_ms
        (fits if covered_ms <= room_ms else left_out).add(place)
    return Fitting(fits, left_out)


def accepted_count(*, now: datetime) -> int:
    """Add all accepted samples that are not yet added. Return the number of quarantines.

    A second call adds nothing.
    """
    waiting = Quarantine.objects.filter(state=Quarantine.State.ACCEPTED, counted_at=None)
    return sum(
        each_row(
            waiting.order_by("pk"), lambda each: _accepted_count(each, now), what="an accepted quarantine"
        )
    )


def _accepted_count(quarantine: Quarantine, now: datetime) -> int:
    for day, vlls in _portions(quarantine):
        _add(quarantine, day, vlls, now)
    _correct(quarantine, now)
    return Quarantine.objects.filter(pk=quarantine.pk, counted_at=None).update(counted_at=now)


def _portions(quarantine: Quarantine) -> Iterator[tuple[date, list[UUID]]]:
    waiting = QuarantinedFiveMinutes.objects.filter(quarantine=quarantine, accepted=False)
    day_of = TruncDate("start_at", tzinfo=UTC)
    portions = waiting.annotate(day=day_of).values_list("day", "vll_id").distinct().order_by("day", "vll_id")
    by_day: dict[date, list[UUID]] = {}
    for day, vll in portions:
        by_day.setdefault(day, []).append(vll)
    for day, vlls in by_day.items():
        for first in range(0, len(vlls), _LINES):
            yield day, vlls[first : first + _LINES]


@transaction.atomic
def _add(quarantine: Quarantine, day: date, vlls: list[UUID], now: datetime) -> None:
    begin = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    days = range(begin, begin + 86_400, FIVE_MINUTES.step_s)
    with connection.cursor() as cursor:
        lock_roll_ups(cursor)
        found = fitting(quarantine, vlls, days)
        _remove(cursor, quarantine, found.left_out)
        _accept(cursor, quarantine, found.fits)
        buckets = sorted({(vll, start) for vll, _side, start in found.fits})
        without_samples = _without_samples(cursor, buckets, now)
        mark_stale(cursor, [bucket for bucket in buckets if bucket not in without_samples])
        add_accepted(cursor, quarantine.pk, [bucket for bucket in buckets if bucket in without_samples])
        _remove(
            cursor, quarantine, {place for place in found.fits if (place[0], place[2]) in without_samples}
        )
    _announce(quarantine, found)


_PLACES = """
WHERE quarantine_id = %s AND (vll_id, side, start_at) IN
    (SELECT * FROM unnest(%s::uuid[], %s::text[], %s::timestamptz[]))
"""
_REMOVE = f"DELETE FROM telemetry_quarantinedfiveminutes {_PLACES}"  # noqa: S608 - a constant
_ACCEPT = f"UPDATE telemetry_quarantinedfiveminutes SET accepted = true {_PLACES}"  # noqa: S608


def _remove(cursor: Any, quarantine: Quarantine, places: Collection[Place]) -> None:
    if places:
        cursor.execute(_REMOVE, _parameters(quarantine, places))


def _accept(cursor: Any, quarantine: Quarantine, places: Collection[Place]) -> None:
    if places:
        cursor.execute(_ACCEPT, _parameters(quarantine, places))


def _parameters(quarantine: Quarantine, places: Collection[Place]) -> list[Any]:
    vlls, sides, starts = (list(column) for column in zip(*places, strict=True))
    return [quarantine.pk, vlls, sides, starts]


_MARKED = """
SELECT b.vll_id, b.start_at FROM unnest(%s::uuid[], %s::timestamptz[]) AS b (vll_id, start_at)
JOIN telemetry_stale_bucket AS mark
     ON mark.vll_id = b.vll_id AND mark.step_s = 300 AND mark.start_at = b.start_at
"""


def _without_samples(
    cursor: Any, buckets: list[tuple[UUID, datetime]], now: datetime
) -> set[tuple[UUID, datetime]]:
    """Return the buckets that no roll-up will count again.

    These buckets are too old for new samples, and none of their stored samples waits for the roll-up.
    """
    reach = now - SAMPLES.retention - _STEP
    old = [bucket for bucket in buckets if bucket[1] <= reach]
    cursor.execute(_MARKED, [[vll for vll, _ in old], [start for _, start in old]])
    return set(old).difference(cursor.fetchall())


def _announce(quarantine: Quarantine, found: Fitting) -> None:
    for name, places in (("added", found.fits), ("left_out", found.left_out)):
        for (vll, side), number in Counter((vll, side) for vll, side, _start in places).items():
            ends = QuarantinedEnd.objects.filter(quarantine=quarantine, vll_id=vll, side=side)
            ends.update(**{name: F(name) + number})


def _correct(quarantine: Quarantine, now: datetime) -> None:
    """Correct the percentiles of lines whose month was frozen without the added samples."""
    added = QuarantinedEnd.objects.filter(quarantine=quarantine, added__gt=0).values("vll_id")
    month = quarantine.month
    if month is None:
        return
    for vll in Vll.objects.filter(pk__in=added).order_by("pk").iterator(chunk_size=500):
        month_correct(vll=vll, month=month, now=now)
