"""The portal compresses pages but not the API, and browsers fetch vendored files once."""

import gzip

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db
ACCEPT_GZIP = {"Accept-Encoding": "gzip"}


def test_page_is_compressed_for_clients_that_accept_it(isp: Isp, alice: User) -> None:
    browser = signed_in(alice)
    packed = browser.get("/orders/new/", headers=ACCEPT_GZIP)
    assert packed["Content-Encoding"] == "gzip"
    assert b"Order a line" in gzip.decompress(packed.content)
    assert "Content-Encoding" not in browser.get("/orders/new/")


def test_etag_of_the_api_stays_strong(isp: Isp, alice: User) -> None:
    vll: Vll = order(isp, alice).vll
    response = signed_in(alice).get(f"/api/v1/vlls/{vll.pk}", headers=ACCEPT_GZIP)
    assert response["ETag"].startswith('"')
    assert "Content-Encoding" not in response


def test_vendored_files_are_immutable_and_own_files_are_not() -> None:
    vendored = Client().get("/static/vendor/htmx-2.0.11/htmx.min.js", headers=ACCEPT_GZIP)
    assert vendored["Content-Encoding"] == "gzip"
    assert "immutable" in vendored["Cache-Control"]
    own = Client().get("/static/css/longline.css", headers=ACCEPT_GZIP)
    assert "immutable" not in own["Cache-Control"]
