"""Error messages about operations on alarms."""

from django.utils.translation import gettext_noop

from portal.alarms import errors
from portal.core.errors import TEXTS

TEXTS |= {
    errors.AlarmCleared: gettext_noop(
        "This alarm cleared automatically at {at}. There is nothing left to do; it stays in the history."
    ),
    errors.AlarmAcknowledged: gettext_noop(
        "{by} already acknowledged this alarm at {at}. To write something else, undo the acknowledgement "
        "first."
    ),
    errors.AlarmNotAcknowledged: gettext_noop(
        "This alarm is not acknowledged, or no longer is. Nothing was changed."
    ),
    errors.NotNocStaff: gettext_noop(
        "No open NOC account is called {username}. Choose a name from the list."
    ),
    errors.SilenceInThePast: gettext_noop("{until} is in the past. Choose a later time."),
    errors.SilenceTooLong: gettext_noop(
        "An alarm can be silenced for {days} days at most. Choose {latest} or earlier."
    ),
}
