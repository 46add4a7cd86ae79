"""The mails that open accounts, forgotten passwords and first ones, wait in rows like all others."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.accounts.people import account_close, staff_add
from portal.core import clock
from portal.events.models import Event
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_delivery import SEND_MAIL, mails_call
from portal.notifications.models import Delivery, Mail, MailOptOut, Webhook
from portal.notifications.webhook_operations import webhook_create
from tests.integration.notifications.mail_server import TAKEN, MailServer
from tests.integration.notifications.receiver import Receiver
from tests.integration.notifications.test_mails import send_all, subjects
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db

ALICE = "alice@dairy.example"
BUSY = "451 come back later"


def forgot(address: str = ALICE) -> str:
    """The page after a request for a new password."""
    return text(Client().post("/password/forgotten/", {"email": address}, follow=True))


def link_in(server: MailServer) -> str:
    found = re.search(r"/password/new/\S+/", str(server.took[-1].get_body(("plain",))))
    assert found is not None
    return found[0]


def test_a_message_that_redis_lost_is_sent_again(server: MailServer, alice: User) -> None:
    forgot()
    events_fan_out(now=clock.now())
    assert mails_call(now=clock.now()) == 1
    assert mails_call(now=clock.now()) == 0
    forget_requests()
    assert mails_call(now=clock.now()) == 1
    assert len(requested(SEND_MAIL)) == 1
    send_all()
    assert subjects(server) == ["Choose a new password"]
    assert Client().get(link_in(server)).status_code == 302


def test_a_busy_mail_server_is_tried_again(server: MailServer, alice: User) -> None:
    server.data = BUSY
    forgot()
    send_all()
    (waiting,) = Mail.objects.all()
    assert (waiting.state, waiting.tries) == ("pending", 1)
    assert "451" in waiting.error
    server.data = TAKEN
    send_all(after=timedelta(minutes=2))
    assert subjects(server) == ["Choose a new password"]


def test_only_the_last_of_several_requested_links_is_sent(server: MailServer, alice: User) -> None:
    server.data = BUSY
    for _ in range(3):
        forgot()
    send_all()
    server.data = TAKEN
    send_all(after=timedelta(minutes=2))
    assert subjects(server) == ["Choose a new password"]


def test_nobody_opts_out_of_them(server: MailServer, alice: User) -> None:
    for group in ("orders", "noc", "lines"):
        MailOptOut.objects.create(user=alice, group=group, since=clock.now())
    forgot()
    send_all()
    assert server.to == [[ALICE]]
    assert server.took[0]["List-Unsubscribe"] is None
    assert "nsubscribe" not in str(server.took[0])


def test_webhooks_hear_nothing_of_accounts(
    server: MailServer, receiver: Receiver, alice: User, nora: User
) -> None:
    hook, _ = webhook_create(
        user=nora, customer=None, url=receiver.url, now=clock.now() - timedelta(minutes=1)
    )
    assert Webhook.objects.get(pk=hook.pk).types == []
    forgot()
    send_all()
    assert subjects(server) == ["Choose a new password"]
    assert Event.objects.get(kind="account.password_reset_asked").pending_notification is False
    assert not Delivery.objects.exists()


def test_an_account_that_was_closed_meanwhile_is_sent_nothing(server: MailServer, alice: User) -> None:
    forgot()
    User.objects.filter(pk=alice.pk).update(is_active=False)
    send_all()
    assert server.took == []
    assert Mail.objects.get().state == "dropped"


def test_a_user_with_a_password_gets_no_first_link(server: MailServer, nina: User) -> None:
    server.data = BUSY
    new = staff_add(username="nora", email="nora@isp.example", role="noc", now=clock.now())
    send_all()
    new.set_password("battery horse staple")
    new.save(update_fields=["password"])
    server.data = TAKEN
    send_all(after=timedelta(minutes=2))
    assert server.took == []


class TestWhatThePageSays:
    @pytest.fixture
    def new(self, nina: User) -> User:
        return staff_add(username="nora", email="nora@isp.example", role="noc", now=clock.now())

    def page(self, nina: User, person: User) -> str:
        return text(signed_in(nina).get(f"/noc/people/{person.pk}/"))

    def test_that_the_link_is_on_its_way(self, nina: User, new: User) -> None:
        events_fan_out(now=clock.now())
        assert "The link to choose a password is on its way" in self.page(nina, new)

    def test_that_the_mail_server_took_it(self, server: MailServer, nina: User, new: User) -> None:
        send_all()
        assert "The mail server accepted the link to choose a password" in self.page(nina, new)

    def test_what_the_mail_server_said_and_that_it_is_tried_again(
        self, server: MailServer, nina: User, new: User
    ) -> None:
        server.data = BUSY
        send_all()
        said = self.page(nina, new)
        assert "The mail server has not accepted the link to choose a password yet" in said
        assert "come back later" in said

    def test_that_it_was_given_up(self, server: MailServer, nina: User, new: User) -> None:
        server.recipient = "550 no such user"
        send_all()
        said = self.page(nina, new)
        assert "The link to choose a password could not be sent" in said
        assert "no such user" in said

    def test_the_page_shows_nothing_without_a_request(self, nina: User, alice: User) -> None:
        account_close(person=alice, now=clock.now())
        assert "the link to choose" not in self.page(nina, alice).lower()

    def test_the_page_says_that_the_mail_server_is_behind(
        self, server: MailServer, alice: User, settings: Any
    ) -> None:
        assert "It may take a while" not in forgot()
        server.data = BUSY
        send_all()
        # Of every address alike, or it would say which ones have an account.
        assert "It may take a while" in forgot()
        assert "It may take a while" in forgot("nobody@dairy.example")
