"""Every page, in a language that marks what was translated: all else is a name or a figure.

It finds what a look at the templates cannot: texts that Python glues together, and those that were translated
once, when their module was imported.
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

# The apps whose rows hold what others than the portal wrote.
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
# The same in every language: names of protocols, programs and units, and how they are written.
NAMES = {
    *("Longline", "NetBox", "VPP", "UTC", "API", "HTTP", "bit", "kbit", "Mbit", "Gbit", "Tbit", "ms", "min"),
    *("VLAN", "VLANs", "VNI", "MTU", "CIR", "EIR", "UNI", "ENNI", "IPv", "VXLAN", "GENEVE", "GRE", "QinQ"),
    # As the calibration of a router names transports.
    *("xc", "vxlan", "geneve", "gre"),
    # What API tokens begin with.
    "ll",
    # Languages are called by their own names.
    *("English", "Deutsch"),
    # Roles, as the audit trail has them.
    *("admin", "operator", "viewer"),
}
# The meaning of a code is written for programmers, like the operations of the API.
_REFERENCE = "/api/docs/errors/"


def data() -> set[str]:
    """The words that people and routers chose: names, notes, messages; codes are not among them."""
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
    """What is read in a browser by tests of its own."""
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
    """A column's text; of JSON those that are more than a word, which may be a code."""
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


def test_the_look_finds_what_is_not_marked() -> None:
    with every_text_marked(), translation.override("en"):
        fine = translation.gettext("Fine")
        inner = translation.gettext("%s lines") % translation.gettext("No")
    page = f'<p title="Not fine">{fine}, {inner} <b>forgotten</b> 7 %</p><code>ls</code>'
    assert unmarked_words(page) == ["Not fine", "forgotten"]
