"""The words for what cannot be said of an alarm."""

from django.utils.translation import gettext_noop

from portal.alarms import errors
from portal.core.errors import TEXTS

TEXTS |= {
    errors.AlarmCleared: gettext_noop(
        "This alarm has cleared by itself at {at}. There is nothing left to do; it stays in the history."
    ),
    errors.AlarmAcknowledged: gettext_noop(
        "{by} has acknowledged this alarm already, at {at}. Take that back first to say something else."
    ),
    errors.AlarmNotAcknowledged: gettext_noop(
        "Nobody has acknowledged this alarm, or it was taken back already. Nothing was changed."
    ),
    errors.NotNocStaff: gettext_noop(
        "Nobody in the NOC with an open account is called {username}. Choose somebody of the list."
    ),
    errors.SilenceInThePast: gettext_noop(
        "{until} is over already. Choose a later moment; times are in UTC."
    ),
    errors.SilenceTooLong: gettext_noop(
        "An alarm is silent for {days} days at most. Choose {latest} or an earlier moment."
    ),
}
