"""Single sign-on: it proves who somebody is, and never makes an account or gives a right."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from portal.accounts.models import User
from portal.audit.history import changes
from portal.web.noc.history import actor
from tests.integration.accounts.codes import with_totp
from tests.integration.accounts.identity_provider import identity_provider
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def alice(alice: User) -> User:
    alice.email = "alice@dairy.example"
    alice.save()
    return alice


def visit(
    settings: Any, client: Client, begin: str = "/login/oidc/sso/", scheme: str = "http", **claims: Any
) -> Any:
    """Through the provider and back; the portal's last answer."""
    with identity_provider(sub="subject-1", **claims) as provider:
        settings.SOCIALACCOUNT_PROVIDERS = {
            "openid_connect": {
                "OAUTH_PKCE_ENABLED": True,
                "APPS": [
                    {
                        "provider_id": "sso",
                        "name": "Dairy SSO",
                        "client_id": "longline",
                        "secret": "for-tests",
                        "settings": {"server_url": provider.url},
                    }
                ],
            }
        }
        away = client.post(begin)
        assert away.status_code == 302
        query = parse_qs(urlsplit(away["Location"]).query)
        assert query["redirect_uri"] == [f"{scheme}://testserver/login/oidc/sso/callback/"]
        assert query["code_challenge_method"] == ["S256"]
        back = {"code": "for-tests", "state": query["state"][0]}
        return client.get("/login/oidc/sso/callback/", back)


def test_it_is_off_unless_configured(settings: Any) -> None:
    assert settings.SOCIALACCOUNT_PROVIDERS == {}
    assert Client().post("/login/oidc/sso/").status_code == 404


def test_alice_comes_in_by_her_verified_address(settings: Any, alice: User) -> None:
    client = Client()
    answer = visit(settings, client, email="Alice@Dairy.example", email_verified=True)
    assert answer["Location"] == "/"
    assert client.get("/").context["user"] == alice


@pytest.mark.parametrize(("proxy", "scheme"), [("10.0.0.1", "https"), ("10.0.0.9", "http")])
def test_behind_a_trusted_proxy_with_tls_the_provider_sends_people_back_to_it(
    settings: Any, alice: User, proxy: str, scheme: str
) -> None:
    settings.LONGLINE_TRUSTED_PROXIES = ["10.0.0.0/29"]
    client = Client(REMOTE_ADDR=proxy, HTTP_HOST="testserver", HTTP_X_FORWARDED_PROTO="https")
    visit(settings, client, scheme=scheme, email="alice@dairy.example", email_verified=True)
    assert client.get("/").context["user"] == alice


def test_an_address_that_only_looks_like_hers_does_not_open_her_account(settings: Any, alice: User) -> None:
    """PostgreSQL makes an I of the dotless ı, and that domain is somebody else's."""
    client = Client()
    visit(settings, client, email="alice@da\u0131ry.example", email_verified=True)
    assert client.get("/").status_code == 302


def test_her_password_goes_on_working(settings: Any, alice: User) -> None:
    visit(settings, Client(), email="alice@dairy.example", email_verified=True)
    login = Client().post("/login/", {"login": "alice", "password": "correct horse battery"})
    assert login["Location"] == "/"


def test_her_second_factor_is_still_required(settings: Any, alice: User) -> None:
    with_totp(alice)
    client = Client()
    answer = visit(settings, client, email="alice@dairy.example", email_verified=True)
    assert answer["Location"] == "/login/second-factor/"
    assert client.get("/").status_code == 302


def test_an_address_that_nobody_verified_opens_nothing(settings: Any, alice: User) -> None:
    client = Client()
    answer = visit(settings, client, email="alice@dairy.example", email_verified=False)
    assert "No account yet" in text(answer)
    assert client.get("/").status_code == 302


def test_a_stranger_gets_no_account(settings: Any, alice: User) -> None:
    before = User.objects.count()
    answer = visit(settings, Client(), email="eve@evil.example", email_verified=True)
    assert "No account yet" in text(answer)
    assert User.objects.count() == before


def test_a_closed_account_stays_closed(settings: Any, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    client = Client()
    visit(settings, client, email="alice@dairy.example", email_verified=True)
    assert client.get("/").status_code == 302


def test_nobody_hangs_a_foreign_identity_on_an_open_session(settings: Any, alice: User, bob: User) -> None:
    client = signed_in(bob)
    begin = "/login/oidc/sso/?process=connect"
    answer = visit(settings, client, begin=begin, email="eve@evil.example", email_verified=True)
    assert answer["Location"] == "/login/oidc-error/"
    assert not bob.socialaccount_set.exists()


def test_the_trail_does_not_say_that_an_identity_was_linked_past_the_portal(
    settings: Any, alice: User
) -> None:
    visit(settings, Client(), email="alice@dairy.example", email_verified=True)
    (linked,) = changes(SocialAccount, "socialaccount", among=SocialAccount.objects.values("pk"))
    assert actor(linked) == "somebody who had not signed in"
