"""The language of pages: first that of the browser, then that of the account."""

from typing import Any

import pytest
from django.test import Client

from portal.accounts.invitations import invitation_path, invite
from portal.accounts.models import Customer, User
from portal.audit.history import object_history
from portal.core import clock
from tests.integration.accounts.test_sign_in import sign_in
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
GERMAN = {"Accept-Language": "de-CH, de;q=0.9, en;q=0.5"}
FRENCH = {"Accept-Language": "fr-CH"}


def language_of(user: User) -> str:
    return User.objects.get(pk=user.pk).language


def is_german(answer: Any) -> bool:
    """Return whether the header says German; the page must be in the same language."""
    content_language = answer["Content-Language"]
    assert f'<html lang="{content_language}"' in answer.content.decode()
    return bool(content_language == "de")


class TestVisitors:
    def test_a_visitor_reads_the_browsers_language(self) -> None:
        answer = Client(headers=GERMAN).get("/login/")
        assert is_german(answer)
        assert "Anmelden" in text(answer)
        assert "Accept-Language" in answer["Vary"]

    def test_a_language_that_the_portal_does_not_have_is_english(self) -> None:
        answer = Client(headers=FRENCH).get("/login/")
        assert not is_german(answer)
        assert "Sign in" in text(answer)

    def test_a_visitor_chooses_another_on_the_sign_in_page(self) -> None:
        client = Client()
        page = client.get("/login/").content.decode()
        assert 'lang="de">Deutsch</button>' in page
        assert client.post("/language/", {"language": "de", "next": "/login/"})["Location"] == "/login/"
        assert is_german(client.get("/login/"))

    def test_nobody_is_led_elsewhere_by_the_choice(self) -> None:
        answer = Client().post("/language/", {"language": "de", "next": "https://elsewhere.example/"})
        assert answer["Location"] == "/"

    def test_a_page_that_does_not_exist_says_so_in_the_readers_language(self, alice: User) -> None:
        assert is_german(Client(headers=GERMAN).get("/nowhere/"))
        User.objects.filter(pk=alice.pk).update(language="de")
        assert is_german(signed_in(alice).get("/nowhere/"))


class TestPeople:
    def test_the_first_sign_in_keeps_the_browsers_language(self, alice: User) -> None:
        client = Client(headers=GERMAN)
        sign_in(client, "alice")
        assert language_of(alice) == "de"
        assert is_german(client.get("/"))

    def test_later_ones_keep_the_first(self, alice: User) -> None:
        sign_in(Client(headers=FRENCH), "alice")
        sign_in(Client(headers=GERMAN), "alice")
        assert language_of(alice) == "en"

    def test_ones_own_language_goes_before_the_browsers(self, alice: User) -> None:
        User.objects.filter(pk=alice.pk).update(language="en")
        client = signed_in(alice)
        assert not is_german(client.get("/account/", headers=GERMAN))

    def test_one_whose_language_is_not_known_yet_reads_the_browsers(self, alice: User) -> None:
        assert is_german(signed_in(alice).get("/", headers=GERMAN))
        assert language_of(alice) == ""

    def test_it_is_chosen_on_the_account_page(self, alice: User) -> None:
        client = signed_in(alice)
        answer = client.post("/account/language/", {"language": "de"}, follow=True)
        assert is_german(answer)
        assert "ab jetzt in dieser Sprache" in text(answer)
        newest = next(iter(object_history(User, alice.pk)))
        assert newest.after == {"language": "de"}

    def test_one_that_is_not_offered_is_refused(self, alice: User) -> None:
        assert signed_in(alice).post("/account/language/", {"language": "tlh"}).status_code == 400
        assert language_of(alice) == ""

    def test_who_is_invited_is_written_to_in_the_language_of_accepting(
        self, ada: User, dairy: Customer
    ) -> None:
        offer = invite(by=ada, customer=dairy, email="dora@dairy.example", role="viewer", now=clock.now())
        account = {"username": "dora", "password": "battery horse staple"}
        Client(headers=GERMAN).post(invitation_path(offer), account)
        assert User.objects.get(username="dora").language == "de"

    def test_a_stored_language_that_is_no_longer_offered_is_english(self, alice: User) -> None:
        User.objects.filter(pk=alice.pk).update(language="rm")
        assert not is_german(signed_in(alice).get("/account/"))


def test_knowing_the_readers_language_costs_no_statement(alice: User, django_assert_num_queries: Any) -> None:
    client = signed_in(alice)
    client.get("/holds/")
    for language in ("", "de"):
        User.objects.filter(pk=alice.pk).update(language=language)
        with django_assert_num_queries(3):
            client.get("/holds/")
