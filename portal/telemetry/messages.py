"""The words for clocks, for samples that were set aside, and for how much of its time a line was up."""

import math

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.telemetry.models import Quarantine


def offset_text(offset_ms: int | None) -> str:
    """``2 h 3 min ahead`` of a clock, by portal time minus its own; "" where it was not measured."""
    if offset_ms is None:
        return ""
    lasting = lasting_text(abs(offset_ms) / 1000)
    if offset_ms == 0:
        return _("right")
    return (
        _("{lasting} ahead").format(lasting=lasting)
        if offset_ms < 0
        else _("{lasting} behind").format(lasting=lasting)
    )


# Why samples were set aside, where their time could be corrected,
_PLACED = {
    "from_the_future": gettext_noop("The router's clock was ahead when it sent them."),
    "too_old": gettext_noop("They came more than two days after they were counted."),
}
# and where it could not.
_UNPLACED = {
    "from_the_future": gettext_noop(
        "They are of the future even for the router's own clock when it sent them: it was set between"
        " counting and sending. Nobody knows when they were counted."
    ),
    "too_old": gettext_noop("They are older than the 5 minutes that are still stored."),
    "ends_before_it_begins": gettext_noop("They end before they begin: the clock was set back meanwhile."),
    "too_long": gettext_noop("One sample covers more than an hour."),
    "negative": gettext_noop("They count less than nothing."),
    "unsteady_clock": gettext_noop(
        "The router's clock never stays: so many decisions about it are open that no more are asked for."
    ),
}


def reason_text(quarantine: Quarantine) -> str:
    """Why samples were set aside."""
    if quarantine.offset_ms is None:
        return _("An earlier release set them aside. By how much the clock was wrong was not kept.")
    texts = _PLACED if quarantine.month else _UNPLACED
    return _(texts[quarantine.reason])


def availability_text(ratio: float | None, known: float | None) -> str:
    """``99.988 %``, or ``100 % of the known 97.2 %``; "" where nothing is known.

    All is rounded down: what was ever down or unknown is never shown as 100 %.
    """
    if ratio is None or known is None:
        return ""
    if known < 1:
        return _("{up} of the known {known}").format(up=_percent(ratio), known=_percent(known))
    return _percent(ratio)


def lasting_text(seconds: float) -> str:
    """``5 min``, ``2 h 10 min``, ``3 d 4 h``: the two largest units that there are."""
    left, parts = round(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def _percent(ratio: float) -> str:
    return f"{math.floor(ratio * 100_000) / 1000:g} %"
