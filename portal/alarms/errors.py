"""What people cannot say of an alarm."""

from datetime import datetime

from portal.core.errors import Conflict, DomainError


class AlarmCleared(Conflict):
    """Its cause is gone: there is nothing left to say of it."""

    at: datetime


class AlarmAcknowledged(Conflict):
    """Somebody was quicker."""

    by: str
    at: datetime


class AlarmNotAcknowledged(Conflict):
    """There is no acknowledgement to take back."""


class NotNocStaff(DomainError):
    """Alarms are assigned to people of the NOC whose accounts are open."""

    field = "to"
    username: str


class SilenceInThePast(DomainError):
    """A silence ends after now."""

    field = "until"
    until: datetime


class SilenceTooLong(DomainError):
    """No alarm is silent for ever."""

    field = "until"
    days: int
    latest: datetime
