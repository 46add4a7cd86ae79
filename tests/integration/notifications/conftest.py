"""A mail server, Alice with an address, and a receiver that webhooks may reach although it is on loopback."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.models import Customer, User
from portal.core import clock
from portal.core.environment import ActivationTestMode
from portal.events.models import Event
from portal.notifications.models import Webhook
from portal.notifications.webhook_operations import webhook_create
from tests.integration.notifications.mail_server import MailServer, taking_mails
from tests.integration.notifications.receiver import Receiver, receiving


@pytest.fixture(autouse=True)
def no_activation_tests(settings: Any) -> None:
    """Orders here announce only events of orders."""
    settings.LONGLINE_LINE_TEST = ActivationTestMode.OFF


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.LONGLINE_WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    settings.LONGLINE_WEBHOOK_ALLOW_HTTP = True
    with receiving() as found:
        yield found


@pytest.fixture
def webhook(receiver: Receiver, ada: User, dairy: Customer) -> Webhook:
    """Alpine Dairy's, for every event; it was there a minute before the test began."""
    made, _ = webhook_create(
        user=ada, customer=dairy, url=receiver.url, now=clock.now() - timedelta(minutes=1)
    )
    # All notifications of these events are done.
    Event.objects.update(pending_notification=False)
    return made


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    """The mail server of the portal."""
    with taking_mails() as found:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", found.port
        settings.BASE_URL = "https://portal.example.net"
        yield found


@pytest.fixture
def alice(alice: User) -> User:
    """She can be mailed; nobody else at the dairy can."""
    User.objects.filter(pk=alice.pk).update(email="alice@dairy.example")
    alice.refresh_from_db()
    return alice
