"""The value of Retry-After as in RFC 9110, and the handling of other values."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from portal.notifications.webhook_delivery import LONGEST, requested_wait

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
NO_DELAY = timedelta(0)

CASES = {
    "seconds": ("120", timedelta(minutes=2)),
    "seconds, with spaces around": (" 7 ", timedelta(seconds=7)),
    "none": ("0", NO_DELAY),
    "a date": ("Sat, 21 Nov 2026 09:45:00 GMT", timedelta(minutes=15)),
    "a date in the form of RFC 850": ("Saturday, 21-Nov-26 09:45:00 GMT", timedelta(minutes=15)),
    "a date in asctime's form": ("Sat Nov 21 09:45:00 2026", timedelta(minutes=15)),
    "a date that is over": ("Sat, 21 Nov 2026 09:00:00 GMT", NO_DELAY),
    "more than is heeded": ("3601", LONGEST),
    "a date far away": ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST),
    "a number without end": ("9" * 10_000, LONGEST),
    "many noughts": ("0" * 10_000, NO_DELAY),
    "nothing": ("", NO_DELAY),
    "below nothing": ("-5", NO_DELAY),
    "a fraction": ("1.5", NO_DELAY),
    "other digits": ("١٢", NO_DELAY),
    "words": ("soon", NO_DELAY),
    "no such day": ("Sat, 99 Nov 2026 09:45:00 GMT", NO_DELAY),
    "no such zone": ("Sat, 21 Nov 2026 09:45:00 +9999999999", NO_DELAY),
}


@pytest.mark.parametrize(("header", "wait"), CASES.values(), ids=CASES)
def test_the_requested_pause_is_read_and_limited(header: str, wait: timedelta) -> None:
    assert requested_wait(header, now=NOW) == wait


def test_a_date_counts_from_now_in_any_zone() -> None:
    local = NOW.astimezone(timezone(timedelta(hours=5)))
    assert requested_wait("Sat, 21 Nov 2026 09:45:00 GMT", now=local) == timedelta(minutes=15)
