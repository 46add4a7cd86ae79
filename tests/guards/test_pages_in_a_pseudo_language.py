"""Every word on every page is translated, a name or a figure.

The pages are rendered in a pseudo-language that marks translated texts. Unlike a check of the templates, this
finds texts that Python concatenates, and texts that were translated once, when their module was imported.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db.models import CharField, JSONField, TextField
from django.test import Client
from django.utils import translation

from portal.accounts.invitations import invitation_path, invite
from portal.accounts.models import Customer, User
from portal.core import clock
from portal.vll.models import Vll
from tests.browser.test_pages_are_accessible import lines, visits
from tests.guards.pseudo_language import every_text_marked, unmarked_words, words
from tests.integration.conftest import ada, alice, bakery, bob, charlie, dairy, isp, nina, nora

__all__ = ["ada", "alice", "bakery", "bob", "charlie", "dairy", "isp", "lines", "nina", "nora"]

# Apps with rows that people, routers or other systems wrote.
_OF_OTHERS = {
    "accounts",
    "alarms",
    "allocation",
    "diagnosis",
    "inventory",
    "netbox_sync",
    "notifications",
    "vll",
}
_CODES = {"code", "object", "cause", "action", "kind"}
# Names of protocols, programs and units, the same in every language.
NAMES = {
    *("Longline", "NetBox", "VPP", "UTC", "API", "HTTP", "bit", "kbit", "Mbit", "Gbit", "Tbit", "ms", "min"),
    *("VLAN", "VLANs", "VNI", "MTU", "CIR", "EIR", "UNI", "ENNI", "IPv", "VXLAN", "GENEVE", "GRE", "QinQ"),
    # Transports, as the calibration of a router names them.
    *("xc", "vxlan", "geneve", "gre"),
    # The prefix of API tokens.
    "ll",
    # Languages have their own names.
    *("English", "Deutsch"),
    # Roles, as the audit trail shows them.
    *("admin", "operator", "viewer"),
}
# The explanation of codes is for programmers, like the operations of the API.
_REFERENCE = "/api/docs/errors/"


def data() -> set[str]:
    """Return the words that people and routers chose, such as names, notes and messages, without codes."""
    found: set[str] = set()
    for model in apps.get_models():
        if model._meta.app_label in _OF_OTHERS:
            for field in model._meta.concrete_fields:
                if field.name in _CODES or field.choices:
                    continue
                if isinstance(field, CharField | TextField | JSONField):
                    for value in model.objects.values_list(field.name, flat=True).distinct():
                        for text in texts_in(value):
                            found |= words(text)
    return found


def around_accounts(customer: Customer) -> list[str]:
    """Return the pages that other tests read in a browser."""
    ada = User.objects.get(username="ada")
    offer = invite(by=ada, customer=customer, email="dora@example.net", role="viewer", now=clock.now())
    return [
        *(
            "/account/",
            "/account/tokens/",
            "/account/security/",
            "/account/password/",
            "/password/forgotten/",
        ),
        *("/login/again/", "/account/email/", "/team/", f"/team/{customer.pk}/", invitation_path(offer)),
    ]


def texts_in(value: Any) -> Iterator[str]:
    """Yield a column's text; of JSON only texts of several words, because one word may be a code."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from (text for text in texts_in(inner) if " " in text)
    elif isinstance(value, str):
        yield value


@pytest.mark.django_db
def test_every_text_of_every_page_is_translated(
    lines: dict[str, Vll], dairy: Customer, bob: User, charlie: User, nora: User, nina: User
) -> None:
    found: dict[str, Any] = {}
    for name, vll in lines.items():  # their names are states, which are to be found
        Vll.objects.filter(pk=vll.pk).update(description=f"{name}-line")
    addresses = visits(lines)
    addresses["ada"] += around_accounts(dairy)
    known = data() | NAMES
    with every_text_marked():
        for who, pages in addresses.items():
            client = Client()
            if who:
                client.force_login(User.objects.get(username=who))
            for address in set(pages) - {_REFERENCE}:
                translation.deactivate()
                page = client.get(address).content.decode()
                for text in unmarked_words(page):
                    if left := words(text) - known:
                        found.setdefault(text, (sorted(left), who, address))
    assert found == {}


def test_the_check_finds_unmarked_texts() -> None:
    with every_text_marked(), translation.override("en"):
        fine = translation.gettext("Fine")
        inner = translation.gettext("%s lines") % translation.gettext("No")
    page = f'<p title="Not fine">{fine}, {inner} <b>forgotten</b> 7 %</p><code>ls</code>'
    assert unmarked_words(page) == ["Not fine", "forgotten"]
