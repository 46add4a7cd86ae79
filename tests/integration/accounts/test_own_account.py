"""What people change of their own account: name, address and password."""

import re
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from django.core import signing
from django.core.cache import cache
from django.test import Client

from portal.accounts.models import User
from portal.accounts.own_account import email_change_path
from portal.audit.history import object_history
from portal.core import clock
from portal.events.models import Event
from portal.notifications.models import MailOptOut
from tests.integration.accounts.codes import code_of, with_totp
from tests.integration.accounts.test_sign_in import PASSWORD, sign_in
from tests.integration.notifications.mail_server import TAKEN, MailServer
from tests.integration.notifications.test_mails import send_all, subjects
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
OLD, NEW = "alice@dairy.example", "alice@alpine.example"


@pytest.fixture
def alice(alice: User) -> User:
    User.objects.filter(pk=alice.pk).update(email=OLD)
    EmailAddress.objects.create(user=alice, email=OLD, verified=True, primary=True)
    cache.clear()
    return User.objects.get(pk=alice.pk)


def there(user: User) -> Client:
    """A browser of ``user`` after a recent sign-in."""
    client = Client()
    sign_in(client, user.username)
    client.post("/login/again/?next=/account/", {"password": PASSWORD})
    return client


def link_in(server: MailServer, to: str) -> str:
    message = next(
        message for message, readers in zip(server.took, server.to, strict=True) if readers == [to]
    )
    found = re.search(r"/account/email/confirm/\S+", str(message.get_body(("plain",))))
    assert found is not None
    return found[0]


def address_of(user: User) -> str:
    return User.objects.get(pk=user.pk).email


class TestAddress:
    def test_it_is_used_once_the_mail_to_it_is_confirmed(self, server: MailServer, alice: User) -> None:
        client = there(alice)
        assert f"on its way to {NEW}" in text(client.post("/account/email/", {"email": NEW}))
        send_all()
        assert server.to == [[NEW]]
        assert address_of(alice) == OLD
        link = link_in(server, NEW)
        assert NEW in text(client.get(link))
        assert address_of(alice) == OLD, "a scanner that follows links confirms nothing"
        assert f"Your e-mail address is {NEW} now" in text(client.post(link, follow=True))
        assert address_of(alice) == NEW

    def test_the_old_address_is_notified_and_no_longer_signs_in(
        self, server: MailServer, alice: User
    ) -> None:
        client = there(alice)
        client.post(email_change_path(alice, to=NEW))
        send_all()
        assert server.to == [[OLD]]
        assert subjects(server) == ["Your account has a new e-mail address"]
        assert sign_in(Client(), OLD).status_code == 200
        assert sign_in(Client(), NEW)["Location"] == "/"
        assert list(EmailAddress.objects.values_list("email", "verified", "primary")) == [(NEW, True, True)]

    def test_notifications_go_to_the_new_one(self, server: MailServer, alice: User) -> None:
        there(alice).post(email_change_path(alice, to=NEW))
        Client().post("/password/forgotten/", {"email": NEW})
        Client().post("/password/forgotten/", {"email": OLD})
        send_all()
        assert sorted(server.to) == [[NEW], [OLD]]
        assert sorted(subjects(server)) == [
            "Choose a new password",
            "Your account has a new e-mail address",
        ]

    def test_the_notification_has_no_opt_out(self, server: MailServer, alice: User) -> None:
        for group in ("orders", "lines", "status"):
            MailOptOut.objects.create(user=alice, group=group, since=clock.now())
        there(alice).post(email_change_path(alice, to=NEW))
        send_all()
        assert server.to == [[OLD]]

    def test_who_has_none_gets_one(self, server: MailServer, alice: User) -> None:
        EmailAddress.objects.all().delete()
        User.objects.filter(pk=alice.pk).update(email="")
        client = there(alice)
        client.post("/account/email/", {"email": NEW})
        send_all()
        client.post(link_in(server, NEW))
        assert address_of(alice) == NEW
        send_all()
        assert server.to == [[NEW]], "there was no old one to tell"

    def test_the_trail_has_it(self, alice: User) -> None:
        there(alice).post(email_change_path(alice, to=NEW))
        newest = object_history(User, alice.pk)[0]
        assert (newest.before["email"], newest.after["email"]) == (OLD, NEW)

    def test_the_password_is_required_first(self, alice: User) -> None:
        client = Client()
        sign_in(client, "alice")
        assert client.get("/account/email/")["Location"] == "/login/again/?next=%2Faccount%2Femail%2F"
        client.post("/account/email/", {"email": NEW})
        assert not Event.objects.filter(kind="account.email_change_asked").exists()

    def test_noc_staff_prove_it_with_their_second_factor_too(self, nora: User) -> None:
        cache.clear()
        secret, client = with_totp(nora), Client()
        sign_in(client, "nora")
        client.post("/login/second-factor/", {"code": code_of(secret)})
        assert "again" in client.get("/account/email/")["Location"]

    @pytest.mark.parametrize(("email", "refusal"), [(OLD, "already your address"), ("nobody", "valid email")])
    def test_an_invalid_or_unchanged_address_is_refused(self, alice: User, email: str, refusal: str) -> None:
        answer = there(alice).post("/account/email/", {"email": email})
        assert answer.status_code == 422
        assert refusal in text(answer)

    def test_the_response_does_not_reveal_addresses_of_other_accounts(
        self, server: MailServer, alice: User, bob: User
    ) -> None:
        User.objects.filter(pk=bob.pk).update(email="bob@dairy.example")
        client = there(alice)
        answer = text(client.post("/account/email/", {"email": "Bob@dairy.example"}))
        assert "on its way" in answer
        send_all()
        refused = client.post(link_in(server, "Bob@dairy.example"))
        assert "already belongs to an account" in text(refused)
        assert address_of(alice) == OLD

    def test_asking_too_often_ends(self, alice: User) -> None:
        client = there(alice)
        answers = [client.post("/account/email/", {"email": f"a{n}@x.example"}).status_code for n in range(6)]
        assert answers == [200] * 5 + [429]

    def test_of_several_the_last_is_sent(self, server: MailServer, alice: User) -> None:
        client = there(alice)
        server.data = "451 come back later"
        for email in ("typo@alpine.example", NEW):
            client.post("/account/email/", {"email": email})
        send_all()
        server.data = TAKEN
        send_all(after=timedelta(minutes=2))
        assert server.to == [[NEW]]


class TestLink:
    def test_it_is_good_once(self, alice: User) -> None:
        link, client = email_change_path(alice, to=NEW), there(alice)
        assert client.post(link).status_code == 302
        assert client.post(link).status_code == 410

    def test_it_is_good_for_its_owner_alone(self, alice: User, bob: User) -> None:
        """A mistyped address may be a stranger's: he reads the mail, and it opens nothing to him."""
        link = email_change_path(alice, to=NEW)
        assert Client().post(link)["Location"].startswith("/login/")
        assert signed_in(bob).post(link).status_code == 410
        assert (address_of(alice), address_of(bob)) == (OLD, bob.email)

    def test_a_new_password_ends_it(self, alice: User) -> None:
        link = email_change_path(alice, to=NEW)
        alice.set_password("battery horse staple")
        alice.save(update_fields=["password"])
        assert signed_in(alice).post(link).status_code == 410

    def test_it_ends_after_a_day(self, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
        link, mailed_at = email_change_path(alice, to=NEW), signing.time.time()
        client = there(alice)
        monkeypatch.setattr(signing.time, "time", lambda: mailed_at + 24 * 3600 + 2)
        assert client.get(link).status_code == 410

    def test_a_forged_one_opens_nothing(self, alice: User) -> None:
        answer = there(alice).post("/account/email/confirm/abc:def:ghi/")
        assert answer.status_code == 410
        assert "no longer valid" in text(answer)


class TestNameAndPassword:
    def test_alice_chooses_the_name_that_others_read(self, alice: User) -> None:
        client = signed_in(alice)
        answer = client.post("/account/", {"first_name": "Alice", "last_name": "Amherd"}, follow=True)
        assert "Your name is saved" in text(answer)
        assert User.objects.get(pk=alice.pk).get_full_name() == "Alice Amherd"
        newest = object_history(User, alice.pk)[0]
        assert newest.after["last_name"] == "Amherd"

    def test_a_name_that_cannot_be_is_refused(self, alice: User) -> None:
        answer = signed_in(alice).post("/account/", {"first_name": "A\u202elice", "last_name": "x" * 151})
        assert answer.status_code == 422
        assert User.objects.get(pk=alice.pk).last_name == alice.last_name

    def test_she_changes_her_password_and_stays_where_she_is(self, alice: User) -> None:
        here, elsewhere, new = there(alice), there(alice), "battery horse staple"
        form = {"oldpassword": PASSWORD, "password1": new, "password2": new}
        answer = here.post("/account/password/", form, follow=True)
        assert answer.redirect_chain == [("/account/", 302)]
        assert "Your password is changed" in text(answer)
        assert elsewhere.get("/").status_code == 302, "other sessions end"

    def test_who_has_none_is_led_to_choosing_one(self, alice: User) -> None:
        alice.set_unusable_password()
        alice.save(update_fields=["password"])
        client = signed_in(alice)
        assert "None: you sign in with single sign-on" in text(client.get("/account/"))
        assert client.get("/account/password/")["Location"] == "/account/password/set/"
        new = "battery horse staple"
        client.post("/account/password/set/", {"password1": new, "password2": new})
        assert sign_in(Client(), "alice", new)["Location"] == "/"

    def test_the_page_gathers_all_of_it(self, alice: User) -> None:
        said = text(signed_in(alice).get("/account/"))
        for each in ("alice", OLD, "Alpine Dairy", "Change your password", "Choose your notifications"):
            assert each in said
