"""The provider's name, logo, colour, terms, contact and help, on pages and in mails."""

from pathlib import Path
from typing import Any

import pytest
from django.core import mail as outbox
from django.template.loader import render_to_string
from django.test import Client

from portal.accounts import mail
from portal.accounts.models import User
from portal.core.provider import Provider
from tests.integration.isp import Isp
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
NOTHING = {
    "name": "Longline",
    **dict.fromkeys(("logo", "colour", "terms_url", "support_email", "support_phone", "help_url"), ""),
}


@pytest.fixture
def savanna(settings: Any, tmp_path: Path) -> Provider:
    logo = tmp_path / "logo.svg"
    logo.write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    settings.LONGLINE_PROVIDER = Provider.read(
        name="Savanna & Sons",
        logo=str(logo),
        colour="#0f5f5c",
        terms_url="https://savanna.example/terms",
        support_email="noc@savanna.example",
        support_phone="+254 20 555 0100",
        help_url="https://help.savanna.example/",
    )
    found: Provider = settings.LONGLINE_PROVIDER
    return found


@pytest.mark.parametrize("address", ["/login/", "/password/forgotten/", "/nowhere/", "/api/docs/"])
def test_anonymous_reader_sees_the_contact(savanna: Provider, address: str) -> None:
    page = Client().get(address)
    assert "Savanna & Sons Help noc@savanna.example +254 20 555 0100 Terms" in text(page)
    for link in ("https://help.savanna.example/", "mailto:noc@savanna.example", "tel:+254205550100"):
        assert f'href="{link}"' in page.content.decode()


@pytest.mark.parametrize("template", ["400", "403", "403_csrf", "404", "429", "500", "503"])
def test_error_pages_show_the_provider_without_a_request(savanna: Provider, template: str) -> None:
    page = render_to_string(f"{template}.html")
    assert "noc@savanna.example" in page
    assert "Savanna &amp; Sons" in page


def test_name_is_in_the_header_and_in_each_title(savanna: Provider, alice: User) -> None:
    said = text(signed_in(alice).get("/"))
    assert "Overview · Savanna & Sons" in said
    assert "Longline" not in said


def test_terms_are_linked_from_the_order_form(savanna: Provider, isp: Isp, alice: User) -> None:
    assert "The terms of Savanna & Sons apply." in text(signed_in(alice).get("/orders/new/"))


def test_terms_and_contact_are_absent_without_settings(isp: Isp, alice: User, settings: Any) -> None:
    settings.LONGLINE_PROVIDER = Provider.read(**NOTHING)
    client = signed_in(alice)
    assert "terms" not in text(client.get("/orders/new/"))
    assert "<footer" not in client.get("/").content.decode()
    assert "/provider/" not in client.get("/").content.decode()


class TestFiles:
    def test_logo_and_colour_are_cached_permanently_by_digest(self, savanna: Provider) -> None:
        page = Client().get("/login/").content.decode()
        assert savanna.logo is not None
        assert savanna.style is not None
        for kind, served in (("logo", savanna.logo), ("style", savanna.style)):
            address = f"/provider/{kind}/{served.digest}/"
            assert f'"{address}"' in page
            answer = Client().get(address)
            assert answer.content == served.content
            assert answer["Content-Type"] == served.content_type
            assert "immutable" in answer["Cache-Control"]
            assert not answer.cookies
            assert "Cookie" not in answer.get("Vary", "")

    def test_script_in_an_opened_logo_does_not_run(self, savanna: Provider) -> None:
        assert savanna.logo is not None
        answer = Client().get(f"/provider/logo/{savanna.logo.digest}/")
        assert "default-src 'self'" in answer["Content-Security-Policy"]
        assert answer["X-Content-Type-Options"] == "nosniff"

    @pytest.mark.parametrize("kind", ["logo", "style"])
    def test_other_digest_is_404(self, savanna: Provider, kind: str) -> None:
        assert Client().get(f"/provider/{kind}/0123456789abcdef/").status_code == 404


class TestMails:
    def send(self) -> Any:
        mail.send(to="a@x.example", template="password_reset", event="e", username="a", link="https://x/y")
        return outbox.outbox[0]

    def test_each_mail_ends_with_name_and_contact(self, savanna: Provider) -> None:
        message = self.send()
        html = message.alternatives[0][0]
        signature = (
            "Savanna & Sons\nHelp: https://help.savanna.example/\nnoc@savanna.example\n+254 20 555 0100\n"
        )
        assert message.body.endswith(signature)
        for each in ("Savanna &amp; Sons", "mailto:noc@savanna.example", "tel:+254205550100"):
            assert each in html

    def test_mail_without_contact_has_no_footer(self, settings: Any) -> None:
        settings.LONGLINE_PROVIDER = Provider.read(**NOTHING)
        assert self.send().body.rstrip().endswith("your password stays as it is.")
