"""Operations of NOC staff on an alarm. They neither raise nor clear it: it clears when its cause ends."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from portal.accounts.models import User
from portal.accounts.people import noc_staff
from portal.alarms import errors
from portal.alarms.models import Alarm, OperatorState

LONGEST_SILENCE = timedelta(days=30)


@transaction.atomic
def alarm_acknowledge(*, alarm: Alarm, user: User, note: str = "", now: datetime) -> None:
    """Record that a user has noticed the alarm. Raises AlarmCleared, AlarmAcknowledged."""
    state = _operator_state(alarm)
    if state.acknowledged_at is not None:
        raise errors.AlarmAcknowledged(by=state.acknowledged_by, at=state.acknowledged_at)
    state.acknowledged_by, state.acknowledged_at, state.note = user.username, now, note
    state.save()


@transaction.atomic
def alarm_unacknowledge(*, alarm: Alarm) -> None:
    """Withdraw an acknowledgement, for example a mistaken one. Raises AlarmCleared, AlarmNotAcknowledged."""
    state = _operator_state(alarm)
    if state.acknowledged_at is None:
        raise errors.AlarmNotAcknowledged
    state.acknowledged_by, state.acknowledged_at, state.note = "", None, ""
    state.save()


@transaction.atomic
def alarm_assign(*, alarm: Alarm, to: str) -> None:
    """Assign the alarm to NOC staff by user name, or to nobody (""). Raises AlarmCleared, NotNocStaff."""
    state = _operator_state(alarm)
    person = noc_staff().filter(username=to, is_active=True).first() if to else None
    if to and person is None:
        raise errors.NotNocStaff(username=to)
    state.assigned_to = person
    state.save()


@transaction.atomic
def alarm_silence(*, alarm: Alarm, user: User, until: datetime, now: datetime) -> None:
    """Hide the alarm until ``until``, even if it clears and is raised again.

    Raises AlarmCleared, SilenceInThePast, SilenceTooLong.
    """
    if until <= now:
        raise errors.SilenceInThePast(until=until)
    if until > now + LONGEST_SILENCE:
        raise errors.SilenceTooLong(days=LONGEST_SILENCE.days, latest=now + LONGEST_SILENCE)
    state = _operator_state(alarm)
    state.silenced_by, state.silenced_until = user.username, until
    state.save()
    # Only the newest silence applies. A silence from an earlier occurrence of the alarm could last longer
    # than the new one, so end it here.
    _silences_end(alarm, but=state.pk)


@transaction.atomic
def alarm_unsilence(*, alarm: Alarm) -> None:
    """Show a silenced alarm again. Without a silence, nothing changes. Raises AlarmCleared."""
    _operator_state(alarm)
    _silences_end(alarm)


def _operator_state(alarm: Alarm) -> OperatorState:
    """Lock the alarm, so that no round clears it, and return its operator state. Raises AlarmCleared."""
    locked = Alarm.objects.select_for_update(no_key=True).get(pk=alarm.pk)
    if locked.cleared_at is not None:
        raise errors.AlarmCleared(at=locked.cleared_at)
    state, _is_new = OperatorState.objects.get_or_create(alarm=locked)
    return state


def _silences_end(alarm: Alarm, *, but: UUID | None = None) -> None:
    silent = OperatorState.objects.filter(
        alarm__in=Alarm.objects.filter(kind=alarm.kind, object=alarm.object), silenced_until__isnull=False
    )
    silent.exclude(pk=but).update(silenced_by="", silenced_until=None)
