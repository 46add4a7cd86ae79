"""Rates, numbers and durations as texts in the reader's language. Rates are in bit/s with SI prefixes."""

import math

from django.utils.formats import get_format
from django.utils.translation import gettext as _

_SI = ((10**12, "Tbit/s"), (10**9, "Gbit/s"), (10**6, "Mbit/s"), (10**3, "kbit/s"))


def rate_text(bps: float) -> str:
    """Return a rate in the largest unit in which the number is at least 1: ``1.5 Gbit/s`` for 1500000000."""
    for factor, unit in _SI:
        if abs(bps) >= factor:
            return f"{localized(f'{bps / factor:.10g}')} {unit}"
    return f"{bps:.0f} bit/s"


def at_most_text(bps: int) -> str:
    """Return the text of a rate, rounded down to four digits, for texts such as "at most ... is free"."""
    step: int = 10 ** max(len(str(bps)) - 4, 0)
    return rate_text(bps // step * step)


def measured_text(bps: float) -> str:
    """Return the text of a measured rate, rounded to three digits, such as ``5.14 Mbit/s``."""
    return rate_text(float(f"{bps:.3g}") if bps >= 1 else round(bps))


def lasting_text(seconds: float) -> str:
    """Return a duration in its two largest units, such as ``5 min``, ``2 h 10 min`` or ``3 d 4 h``."""
    left, parts = round(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def offset_text(offset_ms: int) -> str:
    """Return a text such as ``2 h 3 min ahead`` for a clock.

    ``offset_ms``: portal time minus the time of the clock.
    """
    if offset_ms == 0:
        return _("right")
    lasting = lasting_text(abs(offset_ms) / 1000)
    text = _("{lasting} ahead") if offset_ms < 0 else _("{lasting} behind")
    return text.format(lasting=lasting)


def part_text(ratio: float) -> str:
    """Return a ratio from 0 to 1 as a text in per cent, with two digits but at most three decimal places.

    The value is rounded up, so that even a loss of one frame is never shown as 0 %.
    """
    per_cent = ratio * 100
    digits = max(0, min(3, 1 - math.floor(math.log10(per_cent)))) if per_cent else 0
    return f"{localized(f'{math.ceil(round(per_cent * 10**digits, 6)) / 10**digits:g}')} %"


def count_text(count: float) -> str:
    """Return a count with non-breaking spaces between groups, such as ``1 234 567``, in every language."""
    return f"{round(count):,}".replace(",", "\N{NO-BREAK SPACE}")


def grouped_text(count: int) -> str:
    """Return a count for use in a sentence: ``1,518`` in English, ``1.518`` in German."""
    return f"{count:,}".replace(",", get_format("THOUSAND_SEPARATOR"))


def decimal_text(number: float, digits: int) -> str:
    """Return ``number`` with ``digits`` decimal places: ``0.81`` in English, ``0,81`` in German."""
    return localized(f"{number:.{digits}f}")


def number_text(number: float) -> str:
    """Return a number with at most six digits: ``0.08`` in English, ``0,08`` in German."""
    return localized(f"{number:g}")


def localized(number: str) -> str:
    """Return a number in Python's notation with the decimal sign of the reader's language."""
    return number.replace(".", get_format("DECIMAL_SEPARATOR"))
