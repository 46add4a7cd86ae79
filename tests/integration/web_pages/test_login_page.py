import pytest
from django.test import Client

from portal.accounts.models import User
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db

PAGES = [
    "/",
    "/ports/",
    "/orders/",
    "/orders/new/",
    "/routers/",
    "/vlls/d3f9d3d2-61b6-4c5a-8f53-0d3e6b6a9f10/",
]


@pytest.mark.parametrize("page", PAGES)
def test_page_sends_anonymous_readers_to_the_login_and_back(page: str) -> None:
    answer = Client().get(page)
    assert answer.status_code == 302
    assert answer["Location"] == f"/login/?next={page}"


def test_user_signs_in_and_lands_on_the_overview(alice: User) -> None:
    answer = Client().post("/login/", {"login": "alice", "password": "correct horse battery"}, follow=True)
    assert answer.redirect_chain == [("/", 302)]
    assert "Virtual leased lines" in text(answer)


def test_wrong_password_shows_an_error_and_keeps_the_user_name(alice: User) -> None:
    answer = Client().post("/login/", {"login": "alice", "password": "wrong"})
    assert "password you specified are not correct" in text(answer)
    assert 'value="alice"' in answer.content.decode()


def test_signing_out_is_a_post_and_ends_the_session(alice: User) -> None:
    client = signed_in(alice)
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/").status_code == 302


def test_form_from_another_site_is_refused_in_the_portals_layout(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    answer = client.post("/orders/new/", {})
    assert answer.status_code == 403
    assert "The form has expired" in text(answer)
