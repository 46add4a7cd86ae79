"""Texts about quarantined samples and wrong clocks."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.units import lasting_text
from portal.telemetry.models import Quarantine


def offset_text(offset_ms: int) -> str:
    """Return a text such as ``2 h 3 min ahead`` for a clock.

    ``offset_ms``: portal time minus the time of the clock.
    """
    lasting = lasting_text(abs(offset_ms) / 1000)
    if offset_ms == 0:
        return _("right")
    return (
        _("{lasting} ahead").format(lasting=lasting)
        if offset_ms < 0
        else _("{lasting} behind").format(lasting=lasting)
    )


# Texts of reasons, for quarantines with corrected times.
_PLACED = {
    "from_the_future": gettext_noop("The router's clock was ahead when it sent them."),
    "too_old": gettext_noop("They came more than two days after they were counted."),
}
# Texts of reasons, for quarantines whose times could not be corrected.
_UNPLACED = {
    "from_the_future": gettext_noop(
        "They lie in the future even by the router's own clock when it sent them: the clock was set"
        " between counting and sending. It is not known when they were counted."
    ),
    "too_old": gettext_noop("They are older than the 5-minute figures that are still stored."),
    "ends_before_it_begins": gettext_noop("They end before they begin: the clock was set back in between."),
    "too_long": gettext_noop("One sample covers more than an hour."),
    "negative": gettext_noop("They contain negative counts."),
    "unsteady_clock": gettext_noop(
        "The router's clock keeps jumping. So many of its samples are waiting for a decision that no"
        " more are kept for one."
    ),
}


def reason_text(quarantine: Quarantine) -> str:
    """Return the reason for a quarantine as text. A code that this release does not know stays a code."""
    texts = _PLACED if quarantine.month else _UNPLACED
    reason: str = quarantine.reason
    return _(texts[reason]) if reason in texts else reason
