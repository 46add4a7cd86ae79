"""Each mail is in the language of its reader, independent of its cause and of earlier mails."""

import pytest
from django.core import mail
from django.test import Client
from django.utils import translation

from portal.accounts.invitations import invitation_send, invite
from portal.accounts.models import Customer, User
from portal.core import clock
from tests.integration.isp import Isp
from tests.integration.notifications.test_mails import send_all
from tests.integration.orders import order

pytestmark = pytest.mark.django_db


def speaks(user: User, language: str) -> None:
    User.objects.filter(pk=user.pk).update(language=language, email=f"{user.username}@dairy.example")


def subjects() -> dict[str, str]:
    """By the reader's address, without the provider's name."""
    return {each.to[0]: each.subject.partition("] ")[2] for each in mail.outbox}


def test_a_password_is_chosen_in_ones_own_language(alice: User) -> None:
    speaks(alice, "de")
    Client().post("/password/forgotten/", {"email": "alice@dairy.example"})
    send_all()
    assert subjects() == {"alice@dairy.example": "Neues Passwort wählen"}
    assert "Wählen Sie es hier:" in str(mail.outbox[0].body)
    assert "Wählen Sie es hier:" in str(mail.outbox[0].alternatives[0][0])
    assert translation.get_language() == "en"


def test_of_two_readers_of_one_order_each_reads_their_own(isp: Isp, alice: User, bob: User) -> None:
    speaks(alice, "de")
    speaks(bob, "en")
    order(isp, alice, description="milk")
    send_all()
    assert subjects() == {
        "alice@dairy.example": "Auftrag angenommen: milk",
        "bob@dairy.example": "Order accepted: milk",
    }


class TestInvitations:
    def sent(self, ada: User, dairy: Customer, email: str) -> str:
        offer = invite(by=ada, customer=dairy, email=email, role="viewer", now=clock.now())
        invitation_send(invitation_id=offer.pk, now=clock.now())
        return subjects()[email]

    def test_somebody_new_is_invited_in_the_inviters_language(self, ada: User, dairy: Customer) -> None:
        speaks(ada, "de")
        assert self.sent(ada, dairy, "dora@dairy.example") == "Alpine Dairy beitreten"

    def test_somebody_known_is_invited_in_their_own(self, ada: User, dairy: Customer, charlie: User) -> None:
        speaks(ada, "de")
        speaks(charlie, "en")
        assert self.sent(ada, dairy, "charlie@dairy.example") == "Join Alpine Dairy"
