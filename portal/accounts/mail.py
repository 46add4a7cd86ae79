"""The only function that sends mails. A mail has text and HTML with the same content, and a stable id.

Each kind of mail is a folder below ``templates/mail`` with ``subject.txt`` and ``body.txt``. The HTML is
derived from the text. The provider's signature is at the end of each mail.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe


def send(
    *, to: str, template: str, event: str, headers: Mapping[str, str] | None = None, **values: Any
) -> None:
    """Send a mail to the server in EMAIL_URL. Raises the errors of Django's mail backend.

    ``event``: a stable name of the occasion. The Message-ID depends on ``event`` and the recipient, so that a
    mailbox shows only one copy if the mail is sent twice. ``values``: the values in the template. Each text
    is converted to one line, because users choose some texts, and a line break in a subject would begin a new
    header.
    """
    plain = {name: one_line(value) if isinstance(value, str) else value for name, value in values.items()}
    context = {"portal": urlsplit(settings.BASE_URL).netloc, "provider": settings.LONGLINE_PROVIDER, **plain}
    subject = render_to_string(f"mail/{template}/subject.txt", context)
    body = render_to_string(f"mail/{template}/body.txt", context)
    message = EmailMultiAlternatives(
        subject=one_line(f"{settings.EMAIL_SUBJECT_PREFIX}{subject}"),
        body=body + render_to_string("mail/_signature.txt", context),
        to=[to],
        headers={"Message-ID": message_id(event, to), **(headers or {})},
    )
    html = render_to_string("mail/base.html", {**context, "content": _html(body)})
    message.attach_alternative(html, "text/html")
    message.send()


def _html(body: str) -> SafeString:
    """Return the text of a mail as HTML.

    Empty lines separate paragraphs. A line that is an address of the portal becomes a link. ``* `` begins an
    item of a list, and ``> `` a quotation.
    """
    paragraphs = [part.strip().split("\n") for part in body.split("\n\n") if part.strip()]
    return format_html_join("", "{}", ((_paragraph(lines),) for lines in paragraphs))


def _paragraph(lines: Sequence[str]) -> SafeString:
    if all(line.startswith("* ") for line in lines):
        items = format_html_join("", "<li>{}</li>", ((line[2:],) for line in lines))
        return format_html("<ul>{}</ul>", items)
    if len(lines) == 1 and lines[0].startswith("> "):
        return format_html("<blockquote>{}</blockquote>", lines[0][2:])
    return format_html("<p>{}</p>", format_html_join(mark_safe("<br>"), "{}", map(_line, lines)))


def _line(line: str) -> tuple[str]:
    is_address = line.startswith(settings.BASE_URL) and " " not in line
    return (format_html('<a href="{}">{}</a>', line, line) if is_address else line,)


def message_id(event: str, to: str) -> str:
    """Return a Message-ID (RFC 5322, 3.6.4) that is the same for the same event and recipient.

    The recipient cannot be read from the id.
    """
    host = urlsplit(settings.BASE_URL).hostname
    return f"<{uuid5(NAMESPACE_URL, f'{event} {to.lower()}')}@{host}>"


def one_line(text: str) -> str:
    """Return ``text`` as one line, without control characters and line breaks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
