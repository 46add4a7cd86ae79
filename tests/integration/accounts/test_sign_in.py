"""Getting in: by name or address, with a second factor, and not by guessing."""

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.cache import cache
from django.test import Client

from portal.accounts.models import Customer, User
from portal.accounts.tasks import clear_sessions
from portal.core import clock
from tests.integration.accounts.codes import code_of, recovery_code_of, with_totp
from tests.integration.notifications.test_mails import send_all
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


def sign_in(client: Client, login: str, password: str = PASSWORD, **more: Any) -> Any:
    return client.post("/login/", {"login": login, "password": password}, **more)


def test_alice_signs_in_with_her_address(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email="alice@dairy.example")
    assert sign_in(Client(), "Alice@Dairy.example")["Location"] == "/"


def test_a_closed_account_stays_out(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    client = Client()
    sign_in(client, "alice")
    assert client.get("/").status_code == 302


def test_who_forgot_the_password_chooses_another_by_the_mailed_link(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(email="alice@dairy.example")
    client, new = Client(), "battery horse staple"
    client.post("/password/forgotten/", {"email": "alice@dairy.example"})
    send_all()
    link = re.search(r"/password/new/\S+", str(mail.outbox[0].body))
    assert link is not None
    form = client.get(link[0])["Location"]
    assert client.post(form, {"password1": new, "password2": new})["Location"] == "/password/new/done/"
    assert sign_in(client, "alice", new)["Location"] == "/"
    assert "too old" in text(Client().get(link[0]))


def test_sessions_are_deleted_once_their_time_is_over(alice: User, bob: User) -> None:
    over, open_ = signed_in(alice), signed_in(bob)
    Session.objects.filter(pk=over.session.session_key).update(expire_date=clock.now() - timedelta(seconds=1))
    clear_sessions()
    assert [each.pk for each in Session.objects.all()] == [open_.session.session_key]
    assert "accounts.clear_sessions" in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}


def test_nobody_signs_up() -> None:
    assert Client().get("/signup/").status_code == 404
    assert Client().get("/account/signup/").status_code == 404


class TestSecondFactor:
    def test_a_password_alone_does_not_open_an_account_with_totp(self, alice: User) -> None:
        with_totp(alice)
        client = Client()
        assert sign_in(client, "alice")["Location"] == "/login/second-factor/"
        assert client.get("/").status_code == 302

    def test_the_code_of_the_app_opens_it(self, alice: User) -> None:
        secret, client = with_totp(alice), Client()
        sign_in(client, "alice")
        assert client.post("/login/second-factor/", {"code": code_of(secret)})["Location"] == "/"
        assert client.get("/").status_code == 200

    def test_a_code_opens_it_once(self, alice: User) -> None:
        secret = with_totp(alice)
        code = code_of(secret)
        for client, opens in ((Client(), True), (Client(), False)):
            sign_in(client, "alice")
            client.post("/login/second-factor/", {"code": code})
            assert (client.get("/").status_code == 200) is opens

    def test_a_recovery_code_opens_it_once(self, alice: User) -> None:
        with_totp(alice)
        code = recovery_code_of(alice)
        for client, opens in ((Client(), True), (Client(), False)):
            sign_in(client, "alice")
            client.post("/login/second-factor/", {"code": code})
            assert (client.get("/").status_code == 200) is opens

    def test_alice_sets_it_up_and_gets_recovery_codes(self, alice: User) -> None:
        client = Client()
        sign_in(client, "alice")
        next_page = client.get("/account/security/totp/")["Location"]
        assert next_page.startswith("/login/again/?")
        page = client.post(next_page, {"password": PASSWORD}, follow=True)
        secret = re.search(r"<code>([A-Z2-7]+)</code>", page.content.decode())
        assert secret is not None
        answer = client.post("/account/security/totp/", {"code": code_of(secret[1])}, follow=True)
        assert answer.redirect_chain == [("/account/security/recovery-codes/", 302)]
        assert answer.content.count(b"<code>") == 10

    def test_the_database_contains_neither_seed_nor_codes_in_clear(self, alice: User) -> None:
        secret = with_totp(alice)
        stored = str(list(Authenticator.objects.values_list("data", flat=True)))
        assert secret not in stored


class TestNocNeedsIt:
    def test_every_page_redirects_nora_to_the_set_up(self, nora: User, settings: Any) -> None:
        settings.LONGLINE_NOC_NEEDS_TOTP = True
        client = signed_in(nora)
        for address in ("/", "/routers/", "/api/v1/vlls"):
            assert client.get(address)["Location"] == "/account/security/totp/"

    def test_nora_passes_with_it(self, nora: User, settings: Any) -> None:
        settings.LONGLINE_NOC_NEEDS_TOTP = True
        with_totp(nora)
        assert signed_in(nora).get("/routers/").status_code == 200

    def test_customers_may_do_without(self, alice: User, settings: Any) -> None:
        settings.LONGLINE_NOC_NEEDS_TOTP = True
        assert signed_in(alice).get("/").status_code == 200


class TestGuessing:
    def test_guessing_one_account_ends_after_five_tries(self, alice: User) -> None:
        for _ in range(5):
            sign_in(Client(), "alice", "wrong")
        assert "Too many failed login attempts" in text(sign_in(Client(), "alice"))

    def test_others_are_not_locked_out_by_it(self, alice: User, bob: User) -> None:
        for _ in range(5):
            sign_in(Client(), "alice", "wrong")
        assert sign_in(Client(), "bob").status_code == 302

    def test_a_caller_cannot_pose_as_another_address(self, alice: User, bob: User) -> None:
        for number in range(30):
            sign_in(Client(), f"nobody{number}", "wrong", headers={"X-Forwarded-For": f"192.0.2.{number}"})
        assert sign_in(Client(), "bob", headers={"X-Forwarded-For": "198.51.100.1"}).status_code == 429


class TestWithoutRedis:
    @pytest.fixture
    def no_redis(self, settings: Any) -> None:
        caches = {"default": {**settings.CACHES["default"], "LOCATION": "redis://127.0.0.1:1/1"}}
        settings.CACHES = caches

    def test_alice_signs_in_without_redis(self, alice: User, no_redis: None) -> None:
        assert sign_in(Client(), "alice")["Location"] == "/"

    def test_guessing_still_ends(self, alice: User, no_redis: None) -> None:
        cache.clear()
        for _ in range(5):
            sign_in(Client(), "alice", "wrong")
        assert "Too many failed login attempts" in text(sign_in(Client(), "alice"))


def test_who_comes_to_write_can_begin_at_once(
    client: Client, alice: User, ada: User, dairy: Customer
) -> None:
    begins = re.compile(r'<(?:input|select)[^>]*name="([\w]+)"[^>]*\bautofocus\b')
    assert begins.findall(client.get("/login/").content.decode()) == ["login"]
    assert begins.findall(client.get("/password/forgotten/").content.decode()) == ["email"]
    client.force_login(ada)
    found = {
        address: begins.findall(client.get(address).content.decode())
        for address in (
            "/account/password/",
            "/account/tokens/",
            "/webhooks/add/",
            f"/team/{dairy.pk}/",
            f"/team/{dairy.pk}/?role=admin",
        )
    }
    assert list(found.values()) == [["oldpassword"], ["name"], ["url"], [], ["email"]]
