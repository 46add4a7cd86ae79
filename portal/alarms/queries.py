"""Queries of current and past alarms."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from portal.alarms.models import Alarm, AlarmRound, OperatorState
from portal.core.db.statements import rows_of

# Rounds run every few seconds. A round older than this is too old to be reliable.
LATE_AFTER = timedelta(seconds=30)
_ACKNOWLEDGED = Q(operator_state__acknowledged_at__isnull=False)
_TALLY = f"""
SELECT alarm.kind, alarm.severity,
       count(*) FILTER (WHERE silenced IS NULL AND state.acknowledged_at IS NULL),
       count(*) FILTER (WHERE silenced IS NULL AND state.acknowledged_at IS NOT NULL),
       count(*) FILTER (WHERE silenced IS NOT NULL)
FROM {Alarm._meta.db_table} AS alarm
LEFT JOIN {OperatorState._meta.db_table} AS state ON state.alarm_id = alarm.id
LEFT JOIN (SELECT DISTINCT earlier.kind, earlier.object
           FROM {OperatorState._meta.db_table} AS silence
           JOIN {Alarm._meta.db_table} AS earlier ON earlier.id = silence.alarm_id
           WHERE silence.silenced_until > %s) AS silenced
  ON silenced.kind = alarm.kind AND silenced.object = alarm.object
WHERE alarm.cleared_at IS NULL
GROUP BY alarm.kind, alarm.severity
"""  # noqa: S608 - our own names


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of current alarms of one kind. A silenced alarm counts only in ``silenced``.

    ``kind`` and ``severity`` are as stored: a newer release may have stored values unknown to this one.
    """

    kind: str
    severity: int
    unacknowledged: int
    acknowledged: int
    silenced: int


def alarms_up(now: datetime) -> QuerySet[Any]:
    """Return current alarms with their operator state, the most severe first, then the oldest."""
    rows = Alarm.objects.filter(cleared_at__isnull=True)
    return with_operator_state(rows, now).order_by("severity", "raised_at", "id")


def unacknowledged(now: datetime) -> QuerySet[Any]:
    return alarms_up(now).exclude(_ACKNOWLEDGED).exclude(_is_silenced(now))


def acknowledged(now: datetime) -> QuerySet[Any]:
    return alarms_up(now).filter(_ACKNOWLEDGED).exclude(_is_silenced(now))


def silenced(now: datetime) -> QuerySet[Any]:
    return alarms_up(now).filter(_is_silenced(now))


def with_operator_state(rows: QuerySet[Any], now: datetime) -> QuerySet[Any]:
    """Annotate alarms with ``silenced_until`` and ``silenced_by``.

    A silence that was set during an earlier occurrence still applies.
    """
    silences = _silences(now).order_by("-silenced_until")
    found: QuerySet[Any] = rows.select_related("operator_state__assigned_to").annotate(
        silenced_until=Subquery(silences.values("silenced_until")[:1]),
        silenced_by=Subquery(silences.values("silenced_by")[:1]),
    )
    return found


def _is_silenced(now: datetime) -> Exists:
    return Exists(_silences(now))


def _silences(now: datetime) -> QuerySet[OperatorState]:
    """Return the current silences of the alarm's kind and object, from any occurrence of the alarm."""
    return OperatorState.objects.filter(
        alarm__kind=OuterRef("kind"), alarm__object=OuterRef("object"), silenced_until__gt=now
    )


def tally(now: datetime) -> list[Tally]:
    """Count the current alarms of each kind. A kind without alarms is left out."""
    return [Tally(*row) for row in rows_of(_TALLY, [now])]


def last_round() -> AlarmRound | None:
    """Return the last round, or None before the first round."""
    return AlarmRound.objects.first()


def is_late(last: AlarmRound | None, now: datetime) -> bool:
    """Return whether the last round is too old: some shown alarms may be over, and some may be missing."""
    return last is None or last.at < now - LATE_AFTER
