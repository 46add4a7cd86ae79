"""A script's request from an open page never receives a different page."""

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.web.page.middleware import READER, REFUSED
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.mark.parametrize("path", ["/", "/orders/", "/palette/", "/shortcuts/", "/noc/wall/", "/noc/"])
def test_poll_after_the_end_of_the_session_is_401_and_no_sign_in_page(path: str) -> None:
    answer = Client().get(path, headers=HTMX)
    assert (answer.status_code, answer[REFUSED]) == (401, "signed-out")
    assert b"<form" not in answer.content
    assert Client().get(path).status_code == 302


def test_order_after_the_end_of_the_session_is_401() -> None:
    answer = Client().post("/orders/new/", headers=HTMX)
    assert (answer.status_code, answer[REFUSED]) == (401, "signed-out")


def test_request_from_another_accounts_page_is_refused(isp: Isp, alice: User, bob: User) -> None:
    client = signed_in(alice)
    for path in ("/", "/api/v1/vlls"):
        assert client.get(path, headers={**HTMX, READER: str(alice.pk)}).status_code == 200
        answer = client.get(path, headers={**HTMX, READER: str(bob.pk)})
        assert (answer.status_code, answer[REFUSED]) == (403, "other-account")


def test_outdated_token_is_refused_and_the_refusal_has_a_new_one(isp: Isp, alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in(alice).cookies
    refused = client.post("/orders/new/", {"csrfmiddlewaretoken": "x" * 64}, headers=HTMX)
    assert (refused.status_code, refused[REFUSED]) == (403, "stale-form")
    token = refused["Longline-Form-Token"]
    assert client.post("/orders/new/", {"csrfmiddlewaretoken": token}, headers=HTMX).status_code == 422


def test_required_other_page_is_opened_as_a_whole(settings: Any, nora: User) -> None:
    """In this test the required page sets up the second factor."""
    settings.LONGLINE_NOC_NEEDS_TOTP = True
    answer = signed_in(nora).get("/noc/", headers=HTMX)
    assert (answer.status_code, answer["HX-Redirect"]) == (200, "/account/security/totp/")


def test_sign_in_returns_to_the_page_and_not_to_the_forms_target(alice: User) -> None:
    answer = Client().post(
        "/account/tokens/1/revoke/", headers={"referer": "http://testserver/account/tokens/"}
    )
    assert answer["Location"] == "/login/?next=/account/tokens/"
    answer = Client().post("/account/tokens/1/revoke/", headers={"referer": "http://elsewhere.example/trap"})
    assert answer["Location"] == "/login/?next=/"
