"""The words for refused trouble reports."""

from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS
from portal.diagnosis.trouble_reports import NotForYouToClose, TroubleIsClosed, TroubleIsReported

TEXTS |= {
    TroubleIsReported: gettext_noop(
        "The NOC was told of trouble with this line at {at} and is at it. Wait until it has closed that."
    ),
    TroubleIsClosed: gettext_noop("{by} has closed this report already. Report again what goes on."),
    NotForYouToClose: gettext_noop("Only the NOC closes trouble reports. Wait for it."),
}
