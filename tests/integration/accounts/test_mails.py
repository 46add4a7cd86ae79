"""A mail on the wire: two parts of the same words, one identity, and names that stay names."""

from email import message_from_bytes
from email.message import Message
from email.policy import default
from html.parser import HTMLParser
from typing import Any

import pytest
from django.core import mail

from portal.accounts.invitations import invitation_path, invitation_send, invite
from portal.accounts.mail import message_id
from portal.accounts.models import Customer, Invitation, User
from portal.core import clock
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_delivery import mail_send
from portal.notifications.models import Mail
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db

HOSTILE = '<img src=x onerror=alert(1)> & "Söhne" </a>\r\nBcc: eve@evil.example'


def sent() -> list[Message]:
    return [message_from_bytes(each.message().as_bytes(), policy=default) for each in mail.outbox]


def invited(ada: User, dairy: Customer, email: str = "dora@dairy.example") -> Invitation:
    made = invite(by=ada, customer=dairy, email=email, role="viewer", now=clock.now())
    invitation_send(invitation_id=made.pk, now=clock.now())
    return made


def parts(message: Any) -> tuple[str, str]:
    assert message.get_content_type() == "multipart/alternative"
    text, html = message.iter_parts()
    assert (text.get_content_type(), html.get_content_type()) == ("text/plain", "text/html")
    return text.get_content(), html.get_content()


class Reader(HTMLParser):
    """The tags, and the words, of a mail's HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.words += data.split()


def test_an_invitation_has_both_parts_with_the_same_words(ada: User, dairy: Customer) -> None:
    made = invited(ada, dairy)
    (message,) = sent()
    text, html = parts(message)
    reader = Reader(html)
    (address,) = reader.links
    assert address.endswith(invitation_path(made))
    assert address in text
    assert [word for word in reader.words if word != "Longline"] == text.split()
    assert message["Subject"] == "[Longline] Join Alpine Dairy"


def test_names_with_markup_stay_text_in_every_part(ada: User, dairy: Customer) -> None:
    Customer.objects.filter(pk=dairy.pk).update(name=HOSTILE)
    User.objects.filter(pk=ada.pk).update(first_name="<b>Ada</b>")
    dairy.refresh_from_db()
    ada.refresh_from_db()
    invited(ada, dairy)
    (message,) = sent()
    text, html = parts(message)
    reader = Reader(html)
    assert set(reader.tags) == {"html", "head", "meta", "title", "body", "p", "br", "a"}
    assert "<b>Ada</b>" in " ".join(reader.words)
    one_line = " ".join(HOSTILE.split())
    assert one_line in text
    assert one_line in " ".join(reader.words)
    assert message["Subject"].strip() == f"[Longline] Join {one_line}"
    assert message["Bcc"] is None


def test_a_mail_that_is_sent_again_is_the_same_mail(ada: User, dairy: Customer) -> None:
    made = invited(ada, dairy)
    Invitation.objects.filter(pk=made.pk).update(sent_at=None, sending_until=None)
    invitation_send(invitation_id=made.pk, now=clock.now())
    invited(ada, dairy, "eve@dairy.example")
    first, again, other = (message["Message-ID"] for message in sent())
    assert first == again != other
    assert "dora" not in first


def test_a_message_id_is_of_an_event_and_a_reader(settings: Any) -> None:
    settings.BASE_URL = "https://portal.example.net"
    one = message_id("order.completed-7", "Dora@dairy.example")
    assert one == message_id("order.completed-7", "dora@dairy.example")
    assert (
        len(
            {
                one,
                message_id("order.completed-8", "dora@dairy.example"),
                message_id("order.completed-7", "a@b"),
            }
        )
        == 3
    )
    assert one.endswith("@portal.example.net>")


def test_each_request_of_a_password_reset_sends_one_mail(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email="alice@dairy.example", username="<i>alice")
    browser = signed_in(alice)
    browser.logout()
    for _ in range(2):
        browser.post("/password/forgotten/", {"email": "alice@dairy.example"})
        events_fan_out(now=clock.now())
        last = Mail.objects.latest("pk")
        mail_send(mail_id=last.pk, now=clock.now())
    # As if the worker had died before it wrote down that the last one was sent.
    Mail.objects.filter(pk=last.pk).update(state="pending", next_try_at=clock.now())
    mail_send(mail_id=last.pk, now=clock.now())
    earlier, first, again = sent()
    assert first["Message-ID"] == again["Message-ID"] != earlier["Message-ID"]
    text, html = parts(first)
    assert "new password for <i>alice at" in text
    assert "i" not in Reader(html).tags
    assert Reader(html).links[0] in text
