"""Keeping what is stored of alarms in step with what is wrong: raise, refresh, clear.

Doing it twice changes nothing, and of two rounds at once the second leaves it to the first: what it had read
could be older than what the first has written.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest

from portal.alarms.alarm_condition import AlarmCondition
from portal.alarms.current_conditions import look
from portal.alarms.kinds import SEVERITIES, Kind
from portal.alarms.models import Alarm, AlarmRound
from portal.diagnosis.health_queries import health_counts
from portal.vll.models import Vll
from portal.vll.states import IN_SERVICE

# So many alarms of a kind are up at a time: more would help nobody, and every round writes what it finds. An
# alarm that is up stays up while its cause is found, however many others are. Only new ones wait for room.
MOST = 1000
_THE_ROW = 1
# Of what was forgotten, so many at a time.
_FORGOTTEN_TOGETHER = 5000


@transaction.atomic
def alarms_watch(*, now: datetime) -> bool:
    """One round; whether it was this one's turn."""
    AlarmRound.objects.get_or_create(pk=_THE_ROW, defaults={"at": now})
    if not AlarmRound.objects.select_for_update(skip_locked=True).filter(pk=_THE_ROW).exists():
        return False
    seen = look(now)
    found = {(each.kind.value, each.object): each for each in seen.found}
    up = {(alarm.kind, alarm.object): alarm for alarm in Alarm.objects.filter(cleared_at__isnull=True)}
    standing = [(up[key], each) for key, each in found.items() if key in up]
    room = Counter(dict.fromkeys(Kind, MOST))
    room.subtract(each.kind for _, each in standing)
    _raise(_as_many_as(room, (each for key, each in found.items() if key not in up)), now)
    _refresh(standing)
    _clear([alarm for key, alarm in up.items() if key not in found], seen.unseen, now)
    lines = health_counts(Vll.objects.filter(lifecycle__in=IN_SERVICE))
    AlarmRound.objects.filter(pk=_THE_ROW).update(
        at=now,
        unseen=sorted(kind.value for kind in seen.unseen),
        lines={state.value: count for state, count in lines.items()},
    )
    return True


def _as_many_as(room: Counter[Kind], new: Iterable[AlarmCondition]) -> Iterator[AlarmCondition]:
    """The first of each kind, as long as there is room for more of it."""
    for each in new:
        if room[each.kind] > 0:
            room[each.kind] -= 1
            yield each


def _raise(found: Iterable[AlarmCondition], now: datetime) -> None:
    """A router's clock may say anything of since when."""
    new = [
        Alarm(
            kind=each.kind,
            object=each.object,
            severity=SEVERITIES[each.kind],
            raised_at=min(each.since or now, now),
            **_told(each),
        )
        for each in found
    ]
    Alarm.objects.bulk_create(new, ignore_conflicts=True, batch_size=1000)


def _refresh(pairs: Iterable[tuple[Alarm, AlarmCondition]]) -> None:
    """Only what says something else than it did."""
    changed = []
    for alarm, each in pairs:
        told = _told(each)
        if any(getattr(alarm, name) != value for name, value in told.items()):
            for name, value in told.items():
                setattr(alarm, name, value)
            changed.append(alarm)
    if changed:
        Alarm.objects.bulk_update(changed, list(_TOLD), batch_size=500)


def _clear(gone: Collection[Alarm], unseen: Collection[Kind], now: datetime) -> None:
    """Clear the alarms whose cause is gone.

    An alarm of an unknown kind stays: a newer release raised it, and its worker may run at the same time.
    """
    over = [alarm.pk for alarm in gone if alarm.kind in Kind.values and alarm.kind not in unseen]
    if over:
        Alarm.objects.filter(pk__in=over, cleared_at__isnull=True).update(
            cleared_at=Greatest(F("raised_at"), Value(now))
        )


_TOLD = ("name", "facts", "routers", "lines", "customers", "first_lines")


def _told(each: AlarmCondition) -> dict[str, Any]:
    return {
        "name": each.name[:250],
        "facts": each.facts,
        "routers": sorted(each.routers),
        "lines": each.affected.lines,
        "customers": each.affected.customers,
        "first_lines": each.affected.first,
    }


def alarms_forget(*, before: datetime) -> int:
    """Delete what was over long ago, with what people said of it; how many alarms."""
    forgotten = 0
    while over := list(
        Alarm.objects.filter(cleared_at__lt=before).values_list("pk", flat=True)[:_FORGOTTEN_TOGETHER]
    ):
        Alarm.objects.filter(pk__in=over).delete()
        forgotten += len(over)
    return forgotten
