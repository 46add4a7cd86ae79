"""Changes of webhooks' addresses and secrets are mailed to who runs them: also those by a leaked token."""

from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.events.models import Event
from portal.notifications.event_fanout import events_fan_out
from portal.notifications.mail_recipients import RECEIVER_CHANGED
from portal.notifications.models import Delivery, Mail, MailOptOut, Webhook
from portal.notifications.webhook_operations import webhook_change, webhook_create, webhook_rotate
from tests.integration.api.test_api_v1 import client
from tests.integration.notifications.mail_server import MailServer
from tests.integration.notifications.test_mails import send_all, subjects
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db

OLD, NEW = "https://hooks.example.net/old", "https://hooks.example.net/new"


@pytest.fixture
def ada(ada: User) -> User:
    return mailed(ada, "ada@dairy.example")


@pytest.fixture
def nina(nina: User) -> User:
    return mailed(nina, "nina@isp.example")


def mailed(user: User, address: str) -> User:
    User.objects.filter(pk=user.pk).update(email=address)
    user.refresh_from_db()
    return user


def texts(server: MailServer) -> list[str]:
    return [" ".join(str(took.get_body(("plain",)).get_content()).split()) for took in server.took]


def made(user: User, customer: Customer | None, **more: Any) -> Webhook:
    return webhook_create(user=user, customer=customer, url=OLD, now=clock.now(), **more)[0]


def test_admins_are_notified_of_a_new_webhook_address_or_secret(
    server: MailServer, ada: User, alice: User, nina: User, dairy: Customer
) -> None:
    page = signed_in(ada)
    page.post("/webhooks/add/", {"customer": dairy.pk, "url": OLD, "description": "Tickets"})
    webhook = Webhook.objects.get()
    here = f"/webhooks/{webhook.pk}"
    version = page.get(f"{here}/change/").context["version"]
    sent = {"url": NEW, "description": "Tickets", "version": version}
    assert page.post(f"{here}/change/", sent).status_code == 302
    assert page.post(f"{here}/secret/").status_code == 200
    send_all()
    assert server.to == [["ada@dairy.example"]] * 3
    assert subjects(server) == [
        "Webhook added: Tickets",
        "Webhook has a new address: Tickets",
        "Webhook has a new secret: Tickets",
    ]
    added, led, signed = texts(server)
    assert f"ada added the webhook Tickets: events are sent to {OLD} from now on." in added
    assert f"ada changed the address of the webhook Tickets from {OLD} to {NEW}." in led
    assert f"ada created a new secret for the webhook Tickets ({NEW})" in signed
    assert all("It belongs to Alpine Dairy." in text for text in texts(server))
    assert "whsec" not in "".join(texts(server)) + str(list(Event.objects.values_list("data", flat=True)))


def test_the_mail_names_the_token_and_comes_although_the_webhook_is_gone(
    server: MailServer, ada: User, dairy: Customer
) -> None:
    api = client(ada)
    answer = api.post("/api/v1/webhooks", {"url": OLD}, format="json")
    here = answer["Location"]
    assert api.patch(here, {"url": NEW}, format="json", headers={"If-Match": "*"}).status_code == 200
    assert api.post(f"{here}/secret").status_code == 201
    assert api.delete(here).status_code == 204
    send_all()
    prefix = ada.api_tokens.get().prefix
    assert len(texts(server)) == 3
    assert all(f"The API token test (ll_{prefix}_…) was used for this." in text for text in texts(server))


def test_of_the_nocs_own_its_admins_hear(server: MailServer, ada: User, nora: User, nina: User) -> None:
    mailed(nora, "nora@isp.example")
    made(nina, None)
    send_all()
    assert server.to == [["nina@isp.example"]]
    assert "It belongs to the NOC and receives the events of all customers." in texts(server)[0]


def test_nobody_opts_out_of_it_for_who_has_their_token(
    server: MailServer, ada: User, dairy: Customer
) -> None:
    MailOptOut.objects.create(user=ada, group="webhooks", since=clock.now())
    made(ada, dairy)
    send_all()
    assert subjects(server) == [f"Webhook added: {OLD}"]
    assert "List-Unsubscribe" not in server.took[0]


def test_a_former_manager_of_the_customer_gets_no_mail(
    server: MailServer, ada: User, dairy: Customer
) -> None:
    made(ada, dairy)
    events_fan_out(now=clock.now())
    ada.memberships.update(role="viewer")
    send_all()
    assert (server.to, Mail.objects.get().state) == ([], Mail.State.DROPPED)


def test_what_leads_nowhere_else_is_mailed_to_nobody(ada: User, dairy: Customer) -> None:
    webhook = made(ada, dairy)
    Event.objects.all().delete()
    webhook_change(webhook=webhook, by=ada, now=clock.now(), url=OLD, description="Tickets", types=["vll.up"])
    assert not Event.objects.filter(kind=RECEIVER_CHANGED).exists()


def test_webhooks_do_not_get_the_event(ada: User, dairy: Customer) -> None:
    webhook = made(ada, dairy)
    webhook_rotate(webhook=webhook, by=ada, now=clock.now())
    made(ada, dairy)
    events_fan_out(now=clock.now())
    assert not Delivery.objects.exists()
