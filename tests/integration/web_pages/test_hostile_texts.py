"""Every form and filter of every page with hostile text: the portal never fails with an internal error."""

import re

import pytest
from django.urls import URLPattern

from portal.accounts.models import User
from tests.integration.database.test_tenants_stay_apart import WITH_ARGUMENTS, WITHOUT, Dairy, dairys, filled
from tests.integration.web_pages.browser import signed_in

__all__ = ["dairys"]
pytestmark = pytest.mark.django_db
HOSTILE = ("\0", "7\0", "\x1b[2J\r\n\u202e<script>", "9" * 400, "1e309", "NaN", "-1", "\ufeff", "²")
PAGES = [pytest.param(address, entry, id=address) for address, entry in [*WITH_ARGUMENTS, *WITHOUT]]
NOT_WRITTEN = {"csrfmiddlewaretoken", "version"}
_VERSION = re.compile(r'name="(version)" value="(\w+)"')
_NAME = re.compile(r'<(?:input|select|textarea)[^>]*?\sname="([^"]+)"')


@pytest.mark.parametrize("thinned", [True, pytest.param(False, marks=pytest.mark.release)])
@pytest.mark.parametrize(("address", "entry"), PAGES)
def test_hostile_text_in_forms_and_addresses_never_causes_an_internal_error(
    address: str, entry: URLPattern, dairys: Dairy, nina: User, thinned: bool
) -> None:
    """The NOC sends each text. The customer sends every third, or each if the NOC may not open the page."""
    path, texts = filled(address, entry, dairys.ids), HOSTILE
    for user in (nina, dairys.alice):
        browser = signed_in(user)
        response = first = browser.get(path)
        assert response.status_code < 500
        page = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]
        names = {*_NAME.findall(page.decode()), "q", "after", "show", "from", "to"} - NOT_WRITTEN
        # The page would reject a form on another version of its row before it reads the fields.
        version = dict(_VERSION.findall(page.decode()))
        # Django caches the query in the request when the page reads it.
        reads_query = "GET" in response.wsgi_request.__dict__
        reads_form = "logout" not in path
        for text in texts:
            fields = dict.fromkeys(names, text)
            if reads_query:
                assert browser.get(path, fields).status_code < 500, text
            if reads_form:
                response = browser.post(path, fields | version)
                assert response.status_code < 500, text
                # The portal refuses users without the right and pages without a form before it reads fields.
                reads_form = "_post" in response.wsgi_request.__dict__
        if thinned and first.status_code == 200:
            texts = HOSTILE[::3]
