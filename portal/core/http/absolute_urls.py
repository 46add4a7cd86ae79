"""Absolute URLs, for mails and for responses of the API."""

from django.conf import settings


def absolute_url(path: str) -> str:
    """Return the absolute URL of a page."""
    return f"{settings.BASE_URL.rstrip('/')}{path}"
