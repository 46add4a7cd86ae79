"""Mails about events, through a real SMTP server: to whom, once, what they say, and what ends them."""

import socket
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.announcements import announce
from portal.events.models import Event
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_delivery import mail_send, mails_call, mails_forget
from portal.notifications.mail_recipients import mails_choose, unsubscribe_path
from portal.notifications.models import Mail, MailOptOut
from portal.telemetry.oper_status import Turn, statuses_write
from portal.vll.models import Order, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.modify_line import order_resume, order_suspend
from portal.vll.operations.order_approval import order_reject
from portal.vll.operations.order_progress import orders_overdue_alarm
from portal.vll.operations.state_compare_and_swap import sync_move
from portal.vll.states import OperStatus
from tests.integration.accounts.test_mails import Reader, parts
from tests.integration.isp import GBIT, Isp
from tests.integration.notifications.mail_server import MailServer
from tests.integration.orders import order
from tests.integration.requested_tasks import forget_requests
from tests.integration.router_answers import activate, answer, refuse
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db

HOSTILE = '<img src=x onerror=alert(1)> {{ settings }} {% load i18n %} & "Ö" </a>\r\nBcc: eve@evil.example'


@pytest.fixture
def nora(nora: User) -> User:
    User.objects.filter(pk=nora.pk).update(email="nora@isp.example")
    nora.refresh_from_db()
    return nora


def send_all(*, after: timedelta = timedelta(0)) -> None:
    """The work of the beat and the workers, once, at a time to come."""
    now = clock.now() + after
    events_fan_out(now=now)
    for pk in Mail.objects.filter(next_try_at__lte=now).order_by("pk").values_list("pk", flat=True):
        mail_send(mail_id=pk, now=now)


def subjects(server: MailServer) -> list[str]:
    return [message["Subject"].removeprefix("[Longline] ") for message in server.took]


def states() -> list[tuple[str, str]]:
    return list(Mail.objects.order_by("pk").values_list("kind", "state"))


class TestAboutWhat:
    def test_a_new_line_is_mailed_when_ordered_and_when_in_service(
        self, server: MailServer, isp: Isp, alice: User
    ) -> None:
        placed = order(isp, alice)
        activate(placed.vll)
        send_all()
        assert subjects(server) == ["Order accepted: ZRH-AMS", "In service: ZRH-AMS"]
        assert server.to == [["alice@dairy.example"]] * 2
        first, _ = parts(server.took[0])
        assert "The order of Alpine Dairy for ZRH-AMS, a new line, is accepted." in first
        assert f"https://portal.example.net/vlls/{placed.vll_id}/" in first

    def test_an_order_pending_approval_is_mailed_once_to_customer_and_noc(
        self, server: MailServer, isp: Isp, alice: User, nora: User
    ) -> None:
        Customer.objects.update(approve_up_to_bps=1)
        placed = order(isp, alice, cir_bps=GBIT)
        order_reject(user=nora, order=placed, reason="No capacity", now=clock.now())
        send_all()
        got = sorted((to[0], subject) for to, subject in zip(server.to, subjects(server), strict=True))
        assert got == [
            ("alice@dairy.example", "Order rejected: ZRH-AMS"),
            ("alice@dairy.example", "Order waiting for approval: ZRH-AMS"),
            ("nora@isp.example", "Order waiting for approval: ZRH-AMS"),
        ]
        rejected = next(m for m in server.took if "rejected" in m["Subject"])
        assert "Reason: No capacity" in parts(rejected)[0]

    def test_a_failed_order_says_why(self, server: MailServer, isp: Isp, alice: User) -> None:
        vll = order(isp, alice).vll
        refuse(vll, "a")
        answer(vll, "a", "removed")
        answer(vll, "z", "removed")
        send_all()
        assert "Order failed: ZRH-AMS" in subjects(server)
        failed = server.took[subjects(server).index("Order failed: ZRH-AMS")]
        assert "Reason: Something else on rhino already uses this VLAN (host-cust1.7)." in parts(failed)[0]

    def test_suspending_and_resuming_are_mailed_as_changes_of_the_line(
        self, server: MailServer, isp: Isp, alice: User
    ) -> None:
        vll = order(isp, alice).vll
        activate(vll)
        order_suspend(user=alice, vll=vll, now=clock.now())
        activate(vll)
        order_resume(user=alice, vll=vll, now=clock.now())
        activate(vll)
        order_delete(user=alice, vll=vll, now=clock.now())
        answer(vll, "a", "removed")
        answer(vll, "z", "removed")
        send_all()
        sent = [subject for subject in subjects(server) if not subject.startswith("Order accepted")]
        assert sent == [f"{what}: ZRH-AMS" for what in ("In service", "Suspended", "In service", "Removed")]

    def test_the_noc_is_notified_only_of_overdue_orders_and_drift(
        self, server: MailServer, isp: Isp, alice: User, nora: User
    ) -> None:
        User.objects.filter(pk=alice.pk).update(email="")
        vll = order(isp, alice).vll
        activate(vll)
        sync_move(vll.pk, False, now=clock.now())
        order_suspend(user=alice, vll=vll, now=clock.now())
        orders_overdue_alarm(now=clock.now() + timedelta(hours=1))
        send_all(after=timedelta(minutes=3))
        assert sorted(subjects(server)) == ["Configuration drift: ZRH-AMS", "Order overdue: ZRH-AMS"]
        assert {to[0] for to in server.to} == {"nora@isp.example"}

    def test_only_the_customers_own_people_are_notified(
        self, server: MailServer, isp: Isp, alice: User, charlie: User, bob: User
    ) -> None:
        User.objects.filter(pk=charlie.pk).update(email="charlie@bakery.example")
        User.objects.filter(pk=bob.pk).update(email="bob@dairy.example", is_active=False)
        order(isp, alice)
        send_all()
        assert server.to == [["alice@dairy.example"]]

    def test_admins_are_notified_of_a_disabled_webhook(
        self, server: MailServer, ada: User, alice: User, dairy: Customer
    ) -> None:
        from portal.notifications.webhook_operations import webhook_create, webhook_disable

        User.objects.filter(pk=ada.pk).update(email="ada@dairy.example")
        url = "https://hooks.example.net/"
        made, _ = webhook_create(user=ada, customer=dairy, url=url, now=clock.now())
        webhook_disable(webhook=made, because="gone", now=clock.now())
        send_all()
        assert server.to == [["ada@dairy.example"]] * 2
        assert subjects(server) == [f"Webhook added: {url}", f"Webhook disabled: {url}"]


class TestFlapping:
    """A status is mailed after two minutes, and only if the last mail reported another one."""

    @pytest.fixture
    def line(self, isp: Isp, alice: User) -> Vll:
        vll = order(isp, alice).vll
        activate(vll)
        Event.objects.update(pending_notification=False)
        return vll

    def turns(self, line: Vll, status: OperStatus) -> None:
        statuses_write([Turn(line.pk, status, clock.now())])

    def mailed(self, server: MailServer) -> list[str]:
        send_all(after=timedelta(minutes=3))
        return [subject.partition(":")[0] for subject in subjects(server)]

    def test_down_and_up_again(self, server: MailServer, line: Vll) -> None:
        self.turns(line, OperStatus.UP)
        self.turns(line, OperStatus.DOWN)
        send_all()
        assert server.took == []
        assert self.mailed(server) == ["Down"]
        self.turns(line, OperStatus.UP)
        assert self.mailed(server) == ["Down", "Up again"]

    def test_a_short_outage_is_not_mailed(self, server: MailServer, line: Vll) -> None:
        for status in (OperStatus.UP, OperStatus.DOWN, OperStatus.UP):
            self.turns(line, status)
        assert self.mailed(server) == []
        assert {state for _, state in states()} == {"dropped"}

    def test_a_line_that_flaps_for_hours_causes_one_mail(self, server: MailServer, line: Vll) -> None:
        self.turns(line, OperStatus.DOWN)
        assert self.mailed(server) == ["Down"]
        for _ in range(5):
            self.turns(line, OperStatus.UP)
            self.turns(line, OperStatus.DOWN)
            assert self.mailed(server) == ["Down"]
        self.turns(line, OperStatus.UP)
        assert self.mailed(server) == ["Down", "Up again"]

    def test_a_line_that_was_suspended_meanwhile_is_not_down(
        self, server: MailServer, line: Vll, alice: User
    ) -> None:
        self.turns(line, OperStatus.DOWN)
        order_suspend(user=alice, vll=line, now=clock.now())
        activate(line)
        assert "Down" not in self.mailed(server)


class TestOnce:
    def test_it_is_made_once_and_sent_once(self, server: MailServer, isp: Isp, alice: User) -> None:
        order(isp, alice)
        for _ in range(3):
            send_all()
        pk = Mail.objects.get().pk
        mail_send(mail_id=pk, now=clock.now())
        assert len(server.took) == 1
        assert mails_call(now=clock.now()) == 0

    def test_a_lost_message_is_repeated(self, isp: Isp, alice: User) -> None:
        order(isp, alice)
        now = clock.now()
        events_fan_out(now=now)
        assert [mails_call(now=now), mails_call(now=now)] == [1, 0]
        forget_requests()
        assert mails_call(now=now) == 1

    def test_one_whose_sender_died_is_sent_again_as_the_same_mail(
        self, server: MailServer, isp: Isp, alice: User
    ) -> None:
        order(isp, alice)
        send_all()
        # The server took it, and the sender died before it could say so.
        now = clock.now()
        sending = {"state": "pending", "settled_at": None, "sending_until": now + timedelta(seconds=60)}
        Mail.objects.update(**sending, next_try_at=now)
        mail_send(mail_id=Mail.objects.get().pk, now=now)
        assert len(server.took) == 1
        mail_send(mail_id=Mail.objects.get().pk, now=now + timedelta(seconds=61))
        first, again = (message["Message-ID"] for message in server.took)
        assert first == again

    @pytest.mark.parametrize("at", ["recipient", "data"])
    def test_a_busy_server_is_tried_again(self, server: MailServer, isp: Isp, alice: User, at: str) -> None:
        setattr(server, at, "451 4.7.1 Try again later")
        order(isp, alice)
        send_all()
        waiting = Mail.objects.get()
        assert (waiting.state, waiting.tries) == ("pending", 1)
        assert "451" in waiting.error
        setattr(server, at, "250 OK")
        send_all()
        assert server.took == []
        send_all(after=timedelta(seconds=61))
        assert (len(server.took), Mail.objects.get().state) == (1, "sent")

    @pytest.mark.parametrize("at", ["recipient", "data"])
    def test_a_permanent_refusal_ends_the_attempts(
        self, server: MailServer, isp: Isp, alice: User, at: str
    ) -> None:
        setattr(server, at, "550 5.1.1 No such user")
        order(isp, alice)
        send_all()
        assert states() == [("order.acknowledged", "failed")]
        assert "No such user" in Mail.objects.get().error

    def test_an_unreachable_server_is_tried_for_three_days(
        self, isp: Isp, alice: User, settings: Any
    ) -> None:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
        order(isp, alice)
        now = began = clock.now()
        events_fan_out(now=now)
        while Mail.objects.get().state == "pending":
            mail_send(mail_id=Mail.objects.get().pk, now=now)
            now = Mail.objects.get().next_try_at or now
        assert Mail.objects.get().state == "failed"
        assert timedelta(days=2) < now - began < timedelta(days=4)

    def test_a_server_that_hangs_ends_in_time(self, isp: Isp, alice: User, settings: Any) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
            settings.EMAIL_HOST, settings.EMAIL_PORT = silent.getsockname()
            settings.EMAIL_TIMEOUT = 0.2
            order(isp, alice)
            send_all()
        assert Mail.objects.get().state == "pending"
        assert "imed out" in Mail.objects.get().error

    @pytest.mark.django_db(transaction=True)
    def test_parallel_senders_send_it_once(self, server: MailServer, isp: Isp, alice: User) -> None:
        from django.db import connection

        order(isp, alice)
        events_fan_out(now=clock.now())
        pk = Mail.objects.get().pk

        def work() -> None:
            try:
                mail_send(mail_id=pk, now=clock.now())
            finally:
                connection.close()

        senders = [threading.Thread(target=work) for _ in range(8)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert len(server.took) == 1

    def test_settled_mails_are_deleted_except_the_last_about_each_line(
        self, isp: Isp, alice: User, server: MailServer
    ) -> None:
        vll = order(isp, alice).vll
        activate(vll)
        announce("vll.op-down", now=clock.now(), vll_id=vll.pk)
        send_all(after=timedelta(minutes=3))
        assert mails_forget(before=clock.now() + timedelta(days=30)) == 2
        assert states() == [("vll.op-down", "sent")]


class TestLetters:
    def test_names_with_markup_and_template_syntax_stay_text(
        self, server: MailServer, isp: Isp, alice: User
    ) -> None:
        order(isp, alice, description="<b>{{ link }}</b>")
        Vll.objects.update(description=HOSTILE[:100])
        Customer.objects.update(name=HOSTILE)
        send_all()
        (message,) = server.took
        plain, html = parts(message)
        reader = Reader(html)
        assert set(reader.tags) == {"html", "head", "meta", "title", "body", "p", "br", "a"}
        one_line = " ".join(HOSTILE.split())
        assert one_line in plain
        assert one_line in " ".join(reader.words)
        assert (message["Bcc"], server.to) == (None, [["alice@dairy.example"]])
        assert "{{ settings }}" in message["Subject"]

    def test_both_parts_have_the_same_words(self, server: MailServer, isp: Isp, alice: User) -> None:
        order(isp, alice)
        send_all()
        plain, html = parts(server.took[0])
        assert [word for word in Reader(html).words if word != "Longline"] == plain.split()

    def test_every_mail_can_be_unsubscribed_from_with_one_click(
        self, server: MailServer, isp: Isp, alice: User
    ) -> None:
        order(isp, alice)
        send_all()
        (message,) = server.took
        path = unsubscribe_path(alice, "orders")
        assert message["List-Unsubscribe"].strip() == f"<https://portal.example.net{path}>"
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert message["Auto-Submitted"] == "auto-generated"
        assert f"https://portal.example.net{path}" in parts(message)[0]


class TestPreferences:
    def test_one_click_ends_a_group_and_no_other(self, server: MailServer, isp: Isp, alice: User) -> None:
        client = Client(enforce_csrf_checks=True)
        path = unsubscribe_path(alice, "orders")
        assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
        assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
        assert [(row.user, row.group) for row in MailOptOut.objects.all()] == [(alice, "orders")]
        activate(order(isp, alice).vll)
        send_all()
        assert subjects(server) == ["In service: ZRH-AMS"]

    def test_looking_at_the_link_changes_nothing(self, alice: User) -> None:
        for method in ("get", "head"):
            assert getattr(Client(), method)(unsubscribe_path(alice, "orders")).status_code == 200
        assert not MailOptOut.objects.exists()

    @pytest.mark.parametrize("signed", ["nothing", "1.orders", "1.orders:forged"])
    def test_a_link_of_somebody_elses_making_does_nothing(self, signed: str, alice: User) -> None:
        assert Client().post(f"/unsubscribe/{signed}/").status_code == 404
        assert not MailOptOut.objects.exists()

    def test_a_link_is_for_its_reader_and_group_alone(self, alice: User, bob: User) -> None:
        mine, his = unsubscribe_path(alice, "orders"), unsubscribe_path(bob, "orders")
        signature = mine.rpartition(":")[2]
        assert Client().post(his.rpartition(":")[0] + ":" + signature).status_code == 404

    def test_the_page_shows_and_keeps_what_one_chose(self, alice: User) -> None:
        browser = signed_in(alice)
        shown = text(browser.get("/account/notifications/"))
        assert "Orders that failed" in shown
        assert "For the NOC" not in shown
        assert browser.post("/account/notifications/", {"failures": "on", "noc": "on"}).status_code == 302
        unwanted = set(MailOptOut.objects.values_list("group", flat=True))
        assert unwanted == {"orders", "lines", "status", "reports"}
        browser.post("/account/notifications/", {"failures": "on", "orders": "on"})
        assert "orders" not in MailOptOut.objects.values_list("group", flat=True)

    def test_what_was_unsubscribed_after_it_was_made_is_not_sent(
        self, server: MailServer, isp: Isp, alice: User
    ) -> None:
        order(isp, alice)
        events_fan_out(now=clock.now())
        mails_choose(user=alice, wanted=[], now=clock.now())
        send_all()
        assert (server.took, states()) == ([], [("order.acknowledged", "dropped")])

    def test_who_left_the_customer_meanwhile_gets_nothing(
        self, server: MailServer, isp: Isp, alice: User
    ) -> None:
        order(isp, alice)
        events_fan_out(now=clock.now())
        alice.memberships.all().delete()
        send_all()
        assert (server.took, Order.objects.count()) == ([], 1)
