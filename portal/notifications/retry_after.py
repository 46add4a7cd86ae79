"""The time that a receiver asks to be left alone (RFC 9110, section 10.2.3), as far as that is heeded."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

# Whoever asks for more is asked again then: all ten tries still end within a few days.
LONGEST = timedelta(hours=1)
_NOTHING = timedelta(0)


def asked_wait(header: str, *, now: datetime) -> timedelta:
    """Of seconds or of a date, at most ``LONGEST``; nothing where the header says neither, or the past."""
    text = header.strip()
    if text.isascii() and text.isdecimal():
        digits = text.lstrip("0")
        # Of a very long number Python makes none.
        return LONGEST if len(digits) > 6 else min(timedelta(seconds=int(digits or 0)), LONGEST)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return _NOTHING
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(_NOTHING, min(until - now, LONGEST))
