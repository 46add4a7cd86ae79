"""The pause that a receiver requests with Retry-After (RFC 9110, section 10.2.3), up to a limit."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

# The longest pause that the portal respects, so that all ten attempts end within a few days.
LONGEST = timedelta(hours=1)
_NOTHING = timedelta(0)


def requested_wait(header: str, *, now: datetime) -> timedelta:
    """Return the pause in a Retry-After header, which contains seconds or a date; at most ``LONGEST``.

    Return zero if the header is invalid or the date is past.
    """
    text = header.strip()
    if text.isascii() and text.isdecimal():
        digits = text.lstrip("0")
        # Python refuses to convert very long numbers.
        return LONGEST if len(digits) > 6 else min(timedelta(seconds=int(digits or 0)), LONGEST)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return _NOTHING
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(_NOTHING, min(until - now, LONGEST))
