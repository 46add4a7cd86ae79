"""Errors of operations on alarms."""

from datetime import datetime

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError


class AlarmCleared(Conflict):
    """The cause of the alarm is gone, so the alarm accepts no more operations."""

    text = _(
        "This alarm cleared automatically at {at}. There is nothing left to do; it stays in the history."
    )
    at: datetime


class AlarmAcknowledged(Conflict):
    """Another operator has already acknowledged the alarm."""

    text = _(
        "{by} already acknowledged this alarm at {at}. To write something else, undo the acknowledgement "
        "first."
    )
    by: str
    at: datetime


class AlarmNotAcknowledged(Conflict):
    """There is no acknowledgement to withdraw."""

    text = _("This alarm is not acknowledged, or no longer is. Nothing was changed.")


class NotNocStaff(DomainError):
    """Alarms are assigned to NOC staff with open accounts."""

    text = _("No open NOC account is called {username}. Choose a name from the list.")
    field = "to"
    username: str


class SilenceInThePast(DomainError):
    """A silence must end in the future."""

    text = _("{until} is in the past. Choose a later time.")
    field = "until"
    until: datetime


class SilenceTooLong(DomainError):
    """A silence has a maximum duration."""

    text = _("An alarm can be silenced for {days} days at most. Choose {latest} or earlier.")
    field = "until"
    days: int
    latest: datetime
