"""One way to send a mail: text and HTML of the same words, and an identity that stays when it is sent again.

Each mail is a folder below ``templates/mail`` with ``subject.txt``, ``body.txt`` and ``body.html``.
The provider's signature ends each of them.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string


def send(
    *, to: str, template: str, event: str, headers: Mapping[str, str] | None = None, **values: Any
) -> None:
    """Hand a mail to EMAIL_URL's server; whatever Django's mail backend raises when it does not take it.

    ``event`` names what the mail is about, for good: with the reader it makes the Message-ID, so that a
    mailbox shows one of two copies. People chose some of the ``values``: each becomes one line, since a line
    break in a subject would be a header, and the HTML escapes them.
    """
    plain = {name: one_line(value) if isinstance(value, str) else value for name, value in values.items()}
    context = {"portal": portal_address(), "provider": settings.LONGLINE_PROVIDER, **plain}
    subject = render_to_string(f"mail/{template}/subject.txt", context)
    message = EmailMultiAlternatives(
        subject=one_line(f"{settings.EMAIL_SUBJECT_PREFIX}{subject}"),
        body=render_to_string(f"mail/{template}/body.txt", context)
        + render_to_string("mail/_signature.txt", context),
        to=[to],
        headers={"Message-ID": message_id(event, to), **(headers or {})},
    )
    message.attach_alternative(render_to_string(f"mail/{template}/body.html", context), "text/html")
    message.send()


def message_id(event: str, to: str) -> str:
    """The same for the same event and reader, and without saying who that is (RFC 5322, section 3.6.4)."""
    host = urlsplit(settings.BASE_URL).hostname
    return f"<{uuid5(NAMESPACE_URL, f'{event} {to.lower()}')}@{host}>"


def one_line(text: str) -> str:
    """``text`` without control characters and line breaks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def portal_address() -> str:
    """The address that people know the portal by."""
    netloc: str = urlsplit(settings.BASE_URL).netloc
    return netloc
