"""One way to send a mail: plain text, one line of subject, an identity that stays when it is sent again."""

from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage


def send(*, to: str, subject: str, text: str, identity: str) -> None:
    """Hand a mail to EMAIL_URL's server; whatever Django's mail backend raises when it does not take it.

    Names that people chose come in ``subject`` and ``text``: a line break in a subject would be a header.
    """
    EmailMessage(
        subject=one_line(f"{settings.EMAIL_SUBJECT_PREFIX}{subject}"),
        body=text,
        to=[to],
        headers={"Message-ID": f"<{identity}@{urlsplit(settings.BASE_URL).hostname}>"},
    ).send()


def one_line(text: str) -> str:
    """``text`` without control characters and line breaks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def link(path: str) -> str:
    """The full address of a page."""
    return f"{settings.BASE_URL.rstrip('/')}{path}"


def portal_address() -> str:
    """What people know the portal by."""
    netloc: str = urlsplit(settings.BASE_URL).netloc
    return netloc
