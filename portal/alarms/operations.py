"""What people of the NOC say of an alarm. It neither raises nor clears one: its cause alone does."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.noc_staff import noc_staff
from portal.alarms.errors import (
    AlarmAcknowledged,
    AlarmCleared,
    AlarmNotAcknowledged,
    NotNocStaff,
    SilenceInThePast,
    SilenceTooLong,
)
from portal.alarms.models import Alarm, OperatorState

LONGEST_SILENCE = timedelta(days=30)


@transaction.atomic
def alarm_acknowledge(*, alarm: Alarm, user: User, note: str = "", now: datetime) -> None:
    """Somebody has seen it. Raises AlarmCleared, AlarmAcknowledged."""
    said = _said_of(alarm)
    if said.acknowledged_at is not None:
        raise AlarmAcknowledged(by=said.acknowledged_by, at=said.acknowledged_at)
    said.acknowledged_by, said.acknowledged_at, said.note = user.username, now, note
    said.save()


@transaction.atomic
def alarm_unacknowledge(*, alarm: Alarm) -> None:
    """It was not meant, or whoever meant it is gone. Raises AlarmCleared, AlarmNotAcknowledged."""
    said = _said_of(alarm)
    if said.acknowledged_at is None:
        raise AlarmNotAcknowledged
    said.acknowledged_by, said.acknowledged_at, said.note = "", None, ""
    said.save()


@transaction.atomic
def alarm_assign(*, alarm: Alarm, to: str) -> None:
    """``to``: the user name of somebody in the NOC, or "" for nobody. Raises AlarmCleared, NotNocStaff."""
    said = _said_of(alarm)
    person = noc_staff().filter(username=to, is_active=True).first() if to else None
    if to and person is None:
        raise NotNocStaff(username=to)
    said.assigned_to = person
    said.save()


@transaction.atomic
def alarm_silence(*, alarm: Alarm, user: User, until: datetime, now: datetime) -> None:
    """Do not show it before then, nor when it comes again meanwhile. Raises AlarmCleared, SilenceInThePast,
    SilenceTooLong."""
    if until <= now:
        raise SilenceInThePast(until=until)
    if until > now + LONGEST_SILENCE:
        raise SilenceTooLong(days=LONGEST_SILENCE.days, latest=now + LONGEST_SILENCE)
    said = _said_of(alarm)
    said.silenced_by, said.silenced_until = user.username, until
    said.save()
    # The newest word holds: an earlier occurrence's silence may have been longer.
    _silences_end(alarm, but=said.pk)


@transaction.atomic
def alarm_unsilence(*, alarm: Alarm) -> None:
    """Show it again now; where it is shown already nothing changes. Raises AlarmCleared."""
    _said_of(alarm)
    _silences_end(alarm)


def _said_of(alarm: Alarm) -> OperatorState:
    """Of one that is up, and stays up as long as this lasts: a round that would clear it waits."""
    locked = Alarm.objects.select_for_update(no_key=True).get(pk=alarm.pk)
    if locked.cleared_at is not None:
        raise AlarmCleared(at=locked.cleared_at)
    said, _is_new = OperatorState.objects.get_or_create(alarm=locked)
    return said


def _silences_end(alarm: Alarm, *, but: UUID | None = None) -> None:
    silent = OperatorState.objects.filter(
        alarm__kind=alarm.kind, alarm__object=alarm.object, silenced_until__isnull=False
    )
    silent.exclude(pk=but).update(silenced_by="", silenced_until=None)
