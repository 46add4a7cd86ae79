"""Errors about trouble reports."""

from datetime import datetime

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError


class TroubleIsReported(Conflict):
    """The NOC already has an open trouble report about this line."""

    text = _(
        "Trouble with this line was reported at {at}, and the NOC is working on it. Wait until it has "
        "closed that report."
    )
    at: datetime


class TroubleIsClosed(Conflict):
    """The report is already closed."""

    text = _("{by} has already closed this report. If there is still trouble, report it again.")
    by: str


class NotForYouToClose(DomainError):
    """Only the NOC closes trouble reports."""

    text = _("Only the NOC can close trouble reports. Wait until it does.")
