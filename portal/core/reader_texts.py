"""Texts for a reader: times in the reader's zone, and rates, numbers and durations in the reader's language.

Pages show and read all times in this zone, and name it (ADR 70). The browser sends its zone in a cookie.
Without the cookie, times are in UTC. Times in the API, in mails and in stored texts are always in UTC. All
times in UTC are marked as UTC. Rates are in bit/s with SI prefixes.
"""

import math
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation
from django.utils.formats import get_format
from django.utils.translation import gettext as _

from portal.core.http import Middleware

COOKIE = "longline_zone"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}\Z", re.ASCII)
_OFFSET = re.compile(r"([+-]\d\d)(\d\d)?\Z", re.ASCII)
# The format of ``moment_text`` and ``precise_moment_text`` inside ``in_utc``.
_STORED = re.compile(r"\b(\d{4}-[01]\d-[0-3]\d [0-2]\d:[0-5]\d(:[0-5]\d)?) UTC\b", re.ASCII)
_PROGRAMS = "/api/"


class ReaderZoneMiddleware(Middleware):
    """Activate the browser's time zone for pages. The API uses UTC for everybody."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        zone = zone_named(request.COOKIES.get(COOKIE, ""))
        if zone is None or request.path.startswith(_PROGRAMS):
            return self.get_response(request)
        with timezone.override(zone):
            return self.get_response(request)


def zone_named(name: str) -> tzinfo | None:
    """Return the time zone with this IANA name; None if there is none."""
    if not _NAME.match(name):
        return None
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        # The name is a folder of the database, or is unknown.
        return None


def zone_name() -> str:
    """Return the name of the active zone, such as ``Europe/Berlin``."""
    return timezone.get_current_timezone_name()


def in_utc() -> AbstractContextManager[None]:
    """Return a context manager that makes UTC the active zone, for texts that are stored or sent."""
    return timezone.override(UTC)


def moment_text(at: datetime) -> str:
    """Return a time to the minute in the active zone, such as ``2026-11-30 14:00 CET``."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M} {abbreviation(at)}"


def precise_moment_text(at: datetime) -> str:
    """Return a time to the second in the active zone, such as ``2026-11-30 14:00:07 CET``."""
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S} {abbreviation(at)}"


def time_text(at: datetime, *, seconds: bool = False) -> str:
    """Return the time of day in the active zone, such as ``14:00 CET`` or ``14:00:07 CET``."""
    local = timezone.localtime(at)
    return f"{local:%H:%M:%S} {abbreviation(at)}" if seconds else f"{local:%H:%M} {abbreviation(at)}"


def stored_text_shown(text: str) -> str:
    """Return a stored text, with its UTC times converted to the active zone."""
    return _STORED.sub(_stored_shown, text)


def _stored_shown(found: re.Match[str]) -> str:
    try:
        at = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    except ValueError:
        return found[0]
    return precise_moment_text(at) if found[2] else moment_text(at)


def abbreviation(at: datetime) -> str:
    """Return the active zone's abbreviation at that time, such as ``CET`` or ``CEST``.

    Return a text such as ``UTC+05:45`` if the zone has no abbreviation.
    """
    local = timezone.localtime(at)
    name = local.tzname() or "UTC"
    if found := _OFFSET.match(name):
        return f"UTC{found[1]}:{found[2] or '00'}"
    return name


@contextmanager
def in_english() -> Iterator[None]:
    """Use English and UTC for texts that are composed in the block.

    Pages do not show these sentences: they compose the sentence again from stored facts.
    """
    with translation.override(settings.LANGUAGE_CODE), in_utc():
        yield


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
