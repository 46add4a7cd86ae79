"""Error pages have the portal's layout and name the next step; each response has the content policy."""

from collections.abc import Iterator

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path

from portal.accounts.models import User
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def _broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a mistake of ours")


urlpatterns = [path("broken/", _broken), path("", include("portal.urls"))]


@pytest.fixture
def broken(settings: object) -> Iterator[None]:
    from django.test import override_settings

    with override_settings(ROOT_URLCONF=__name__):
        yield


def test_unknown_address_is_404_in_the_portals_layout(alice: User) -> None:
    answer = signed_in(alice).get("/nowhere/")
    assert answer.status_code == 404
    assert "Page not found" in text(answer)
    assert answer["X-Request-Id"] in text(answer)


def test_refusal_is_403_and_names_a_contact(bob: User, isp: object) -> None:
    answer = signed_in(bob).get("/orders/new/")
    assert answer.status_code == 403
    assert "Ask an operator or admin" in text(answer)


def test_internal_error_is_500_and_names_the_request(broken: None, alice: User) -> None:
    client = signed_in(alice)
    client.raise_request_exception = False
    answer = client.get("/broken/")
    assert answer.status_code == 500
    assert "Our mistake" in text(answer)
    assert answer["X-Request-Id"] in text(answer)
    assert "a mistake of ours" not in answer.content.decode()


@pytest.mark.parametrize("page", ["/login/", "/", "/nowhere/"])
def test_content_policy_forbids_inline_script_and_style(page: str) -> None:
    policy = Client().get(page)["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
