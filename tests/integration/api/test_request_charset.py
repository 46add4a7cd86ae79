"""The portal reads every request as UTF-8: no charset in a request causes an internal error."""

from io import BytesIO
from typing import Any
from urllib.parse import quote
from wsgiref.util import setup_testing_defaults

import pytest
from django.conf import settings

from portal.accounts.models import User
from portal.inventory.models import Site
from portal.wsgi import application
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import session_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_connection")]
CLAIMED = [
    "text/plain; charset=rot13",
    "text/plain; charset=utf-16",
    "text/plain; charset*=nonsense''x",
    "multipart/form-data; boundary=x; charset=utf-7",
]
# Half a surrogate pair, and a router's name, in UTF-7.
HALF, UTF_7 = "+2AA-", "+AHI-hino"
SECRET = "a" * 32


def request(path: str, query: str, content_type: str, user: User, **more: Any) -> tuple[int, str]:
    cookie = f"{settings.SESSION_COOKIE_NAME}={session_of(user)}; {settings.CSRF_COOKIE_NAME}={SECRET}"
    environ: dict[str, Any] = {
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": content_type,
        "HTTP_HOST": "testserver",
        "HTTP_COOKIE": cookie,
        **more,
    }
    setup_testing_defaults(environ)
    statuses = []
    response = application(environ, lambda status, headers, *more: statuses.append(status))
    body = b"".join(response).decode()
    response.close()
    return int(statuses[0].split()[0]), body


@pytest.mark.parametrize("claimed", CLAIMED)
@pytest.mark.parametrize("path", ["/search/", "/ports/", "/noc/ports/", "/noc/audit/", "/api/v1/vlls"])
def test_search_text_is_read_as_utf_8(isp: Isp, nora: User, path: str, claimed: str) -> None:
    for text in (HALF, "rhino"):
        assert request(path, f"q={quote(text)}", claimed, nora)[0] == 200


def test_text_in_another_encoding_does_not_match(isp: Isp, nora: User) -> None:
    status, body = request("/noc/ports/", f"q={quote(UTF_7)}", "text/plain; charset=utf-7", nora)
    assert (status, "rhino:host-cust1" in body) == (200, False)
    assert "rhino:host-cust1" in request("/noc/ports/", "q=rhino", "text/plain; charset=utf-7", nora)[1]


def test_form_is_read_as_utf_8(isp: Isp, nora: User) -> None:
    body = f'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n{HALF}\r\n--x--\r\n'.encode()
    sent = {
        "REQUEST_METHOD": "POST",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
        "HTTP_X_CSRFTOKEN": SECRET,
    }
    claimed = "multipart/form-data; boundary=x; charset=utf-7"
    assert request("/noc/sites/add/", "", claimed, nora, **sent)[0] == 302
    assert Site.objects.filter(name=HALF).exists()
