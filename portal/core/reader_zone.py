"""The reader's time zone. Pages show and read all times in this zone, and name it (ADR 70).

The browser sends its zone in a cookie. Without the cookie, times are in UTC. Times in the API, in mails and
in stored texts are always in UTC. All times in UTC are marked as UTC.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone, translation

from portal.core.http.view_permission import View

COOKIE = "longline_zone"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,2}\Z", re.ASCII)
_OFFSET = re.compile(r"([+-]\d\d)(\d\d)?\Z", re.ASCII)
# The format of ``moment_text`` and ``precise_moment_text`` inside ``in_utc``.
_STORED = re.compile(r"\b(\d{4}-[01]\d-[0-3]\d [0-2]\d:[0-5]\d(:[0-5]\d)?) UTC\b", re.ASCII)
_PROGRAMS = "/api/"


class ReaderZoneMiddleware:
    """Activate the browser's time zone for pages. The API uses UTC for everybody."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

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
