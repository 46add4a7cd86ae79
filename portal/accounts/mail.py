"""The only way to send a mail: text and HTML with the same content, and an id that survives a retry.

Each mail is a folder below ``templates/mail`` with ``subject.txt``, ``body.txt`` and ``body.html``. Each mail
ends with the provider's signature.
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
    """Hand a mail to EMAIL_URL's server. Raises any error of Django's mail backend if the server refuses.

    ``event`` is a stable name of the subject. Together with the recipient it determines the Message-ID, so
    that a mailbox shows only one of two copies. Users choose some of ``values``. Each becomes one line,
    because a line break in a subject would start a header, and the HTML escapes it.
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
    """Return the same id for the same event and recipient, without revealing the recipient (RFC
    5322, 3.6.4).
    """
    host = urlsplit(settings.BASE_URL).hostname
    return f"<{uuid5(NAMESPACE_URL, f'{event} {to.lower()}')}@{host}>"


def one_line(text: str) -> str:
    """Return ``text`` without control characters and line breaks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def portal_address() -> str:
    """Return the public URL of the portal."""
    netloc: str = urlsplit(settings.BASE_URL).netloc
    return netloc
