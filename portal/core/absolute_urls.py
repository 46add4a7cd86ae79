"""Full addresses, for whoever reads them elsewhere: in a mail, in an answer of the API."""

from django.conf import settings


def absolute_url(path: str) -> str:
    """The full address of a page."""
    return f"{settings.BASE_URL.rstrip('/')}{path}"
