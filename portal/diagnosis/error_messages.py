"""Messages of refused trouble reports."""

from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS
from portal.diagnosis.trouble_reports import NotForYouToClose, TroubleIsClosed, TroubleIsReported

TEXTS |= {
    TroubleIsReported: gettext_noop(
        "Trouble with this line was reported at {at}, and the NOC is working on it. Wait until it has "
        "closed that report."
    ),
    TroubleIsClosed: gettext_noop(
        "{by} has already closed this report. If there is still trouble, report it again."
    ),
    NotForYouToClose: gettext_noop("Only the NOC can close trouble reports. Wait until it does."),
}
