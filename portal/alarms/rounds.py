"""Update the stored alarms from the current conditions: raise, refresh, clear.

A second round with the same conditions changes nothing. If two rounds overlap, the second does nothing: its
data may be older than the data that the first has written.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Greatest

from portal.alarms import line_alarms, portal_alarms, router_alarms
from portal.alarms.kinds import AlarmCondition, Kind
from portal.alarms.models import Alarm, AlarmRound
from portal.diagnosis.health import in_service_counts
from portal.vll.models import Vll

log = logging.getLogger(__name__)

SOURCES: list[tuple[tuple[Kind, ...], Callable[[datetime], Iterator[AlarmCondition]]]] = [
    ((Kind.REPORTS_AWAY,), router_alarms.reports_away),
    ((Kind.ROUTER_SILENT,), router_alarms.silent),
    ((Kind.VPP_AWAY, Kind.VPP_HANGS), router_alarms.without_vpp),
    ((Kind.PATH_DOWN, Kind.PORT_DOWN, Kind.LINE_DOWN), line_alarms.down),
    ((Kind.BLACK_HOLE,), line_alarms.black_holes),
    ((Kind.TROUBLE,), line_alarms.trouble),
    ((Kind.ROUTER_DIFFERS, Kind.LINE_DIFFERS), line_alarms.differing),
    ((Kind.CONTESTED,), line_alarms.contested),
    ((Kind.VLAN_LOSS,), line_alarms.vlan_losses),
    ((Kind.LOSSES, Kind.FEW_BUFFERS), router_alarms.lossy),
    ((Kind.ORDER_OVERDUE, Kind.ORDER_FAILED, Kind.ORDER_PENDING_APPROVAL), line_alarms.orders),
    (
        (Kind.AGENT_AHEAD, Kind.FILES_ASIDE, Kind.CERTIFICATE_ENDS, Kind.WITHHELD),
        router_alarms.agents,
    ),
    # Only the previous release raises alarms of this kind; this release ends them.
    ((Kind.RELAY,), lambda _now: iter(())),
    ((Kind.QUEUE_UNSERVED,), portal_alarms.queues_without_worker),
    ((Kind.TEST_FAILED,), line_alarms.failed_tests),
    ((Kind.UNCONFIRMED,), line_alarms.unconfirmed),
    ((Kind.LINK_MTU, Kind.LINK_INTERFACE), router_alarms.links),
    ((Kind.CLOCK_WRONG,), router_alarms.wrong_clocks),
    ((Kind.MAILS,), portal_alarms.mails),
    ((Kind.WEBHOOK,), portal_alarms.webhooks),
    ((Kind.NETBOX, Kind.NETBOX_LINES), portal_alarms.netbox),
    ((Kind.PATH_UNHEARD,), line_alarms.unwatched_paths),
    ((Kind.PORT_SLOW,), router_alarms.slow_ports),
    ((Kind.PORT_FULL,), router_alarms.full_ports),
    ((Kind.ROUTER_FULL,), router_alarms.full_routers),
]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. ``unchecked``: kinds whose check failed; their alarms stay up."""

    found: list[AlarmCondition] = field(default_factory=list)
    unchecked: set[Kind] = field(default_factory=set)


def find_conditions(now: datetime) -> CheckResult:
    """Find all problems, with a fixed number of statements per kind, even if one source fails."""
    result = CheckResult()
    for kinds, source in SOURCES:
        try:
            with transaction.atomic():
                found = list(source(now))
        except Exception:
            log.exception("cannot check the conditions of %s", ", ".join(kinds))
            result.unchecked.update(kinds)
        else:
            result.found.extend(found)
    return result


# The maximum number of current alarms of a kind. More alarms would help nobody, and each round writes all of
# them. The limit applies only to new alarms: an alarm that is up stays up as long as its cause exists.
MOST = 1000
_THE_ROW = 1
# Old alarms are deleted in batches of this number of rows.
_FORGOTTEN_TOGETHER = 5000


@transaction.atomic
def alarms_watch(*, now: datetime) -> bool:
    """Run one round. Return False, without running, if another round is running."""
    AlarmRound.objects.get_or_create(pk=_THE_ROW, defaults={"at": now})
    if not AlarmRound.objects.select_for_update(skip_locked=True).filter(pk=_THE_ROW).exists():
        return False
    result = find_conditions(now)
    found = {(each.kind.value, each.object): each for each in result.found}
    up = {(alarm.kind, alarm.object): alarm for alarm in Alarm.objects.filter(cleared_at__isnull=True)}
    continuing = [(up[key], each) for key, each in found.items() if key in up]
    room = Counter(dict.fromkeys(Kind, MOST))
    room.subtract(each.kind for _, each in continuing)
    _raise(_as_many_as(room, (each for key, each in found.items() if key not in up)), now)
    _refresh(continuing)
    _clear([alarm for key, alarm in up.items() if key not in found], result.unchecked, now)
    lines = in_service_counts(Vll.objects.all())
    AlarmRound.objects.filter(pk=_THE_ROW).update(
        at=now,
        unchecked_kinds=sorted(kind.value for kind in result.unchecked),
        lines={state.value: count for state, count in lines.items()},
    )
    return True


def _as_many_as(room: Counter[Kind], new: Iterable[AlarmCondition]) -> Iterator[AlarmCondition]:
    """Yield the new conditions, for each kind at most as many as ``room`` allows."""
    for each in new:
        if room[each.kind] > 0:
            room[each.kind] -= 1
            yield each


def _raise(found: Iterable[AlarmCondition], now: datetime) -> None:
    """Raise new alarms. ``raised_at`` is at most ``now``, because the clock of a router may be wrong."""
    new = [
        Alarm(
            kind=each.kind,
            object=each.object,
            severity=each.kind.severity,
            raised_at=min(each.since or now, now),
            **_content(each),
        )
        for each in found
    ]
    Alarm.objects.bulk_create(new, ignore_conflicts=True, batch_size=1000)


def _refresh(pairs: Iterable[tuple[Alarm, AlarmCondition]]) -> None:
    changed = []
    for alarm, each in pairs:
        content = _content(each)
        if any(getattr(alarm, name) != value for name, value in content.items()):
            for name, value in content.items():
                setattr(alarm, name, value)
            changed.append(alarm)
    if changed:
        Alarm.objects.bulk_update(changed, list(_CONTENT), batch_size=500)


def _clear(gone: Collection[Alarm], unchecked: Collection[Kind], now: datetime) -> None:
    """Clear alarms whose cause is gone, but none of an unknown kind: a worker of a newer release may run."""
    over = [alarm.pk for alarm in gone if alarm.kind in Kind.values and alarm.kind not in unchecked]
    if over:
        Alarm.objects.filter(pk__in=over, cleared_at__isnull=True).update(
            cleared_at=Greatest(F("raised_at"), Value(now))
        )


_CONTENT = ("name", "facts", "routers", "lines", "customers", "first_lines")


def _content(each: AlarmCondition) -> dict[str, Any]:
    return {
        "name": each.name[:250],
        "facts": each.facts,
        "routers": sorted(each.routers),
        "lines": each.affected.lines,
        "customers": each.affected.customers,
        "first_lines": each.affected.first,
    }


def alarms_forget(*, before: datetime) -> int:
    """Delete alarms that were cleared before ``before``. Return the number of alarms."""
    forgotten = 0
    while over := list(
        Alarm.objects.filter(cleared_at__lt=before).values_list("pk", flat=True)[:_FORGOTTEN_TOGETHER]
    ):
        Alarm.objects.filter(pk__in=over).delete()
        forgotten += len(over)
    return forgotten
