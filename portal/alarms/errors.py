"""Errors of operations on alarms."""

from datetime import datetime

from portal.core.errors import Conflict, DomainError


class AlarmCleared(Conflict):
    """The cause of the alarm is gone, so the alarm accepts no more operations."""

    at: datetime


class AlarmAcknowledged(Conflict):
    """Another operator has already acknowledged the alarm."""

    by: str
    at: datetime


class AlarmNotAcknowledged(Conflict):
    """There is no acknowledgement to withdraw."""


class NotNocStaff(DomainError):
    """Alarms are assigned to NOC staff with open accounts."""

    field = "to"
    username: str


class SilenceInThePast(DomainError):
    """A silence must end in the future."""

    field = "until"
    until: datetime


class SilenceTooLong(DomainError):
    """A silence has a maximum duration."""

    field = "until"
    days: int
    latest: datetime
