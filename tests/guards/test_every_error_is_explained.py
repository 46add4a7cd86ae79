"""The type of every problem document leads to an entry of a page and of docs/reference/errors.md."""

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from rest_framework import exceptions

from devstack.folders import ROOT
from portal import urls
from portal.api.problem_details import KINDS, entries, markdown, problem, refusal
from portal.core.errors import error_types
from portal.vll.errors import NothingToChange

CODES = {entry.code: entry for entry in entries()}


def api_exceptions(base: type[exceptions.APIException]) -> Iterator[type[exceptions.APIException]]:
    for kind in base.__subclasses__():
        yield kind
        yield from api_exceptions(kind)


def test_every_refusal_is_explained_with_its_facts() -> None:
    for kind in error_types():
        entry = CODES[kind.code]
        assert entry.meaning.endswith("."), kind
        assert entry.facts == kind.fact_names()


def test_every_exception_of_a_view_is_explained() -> None:
    assert urls.urlpatterns
    raised = api_exceptions(exceptions.APIException)
    found = {kind.default_code.replace("_", "-"): kind.status_code for kind in raised}
    assert len(found) > 12
    # The input is well-formed JSON with unacceptable values.
    assert {**found, "invalid": 422}.items() <= {code: kind[0] for code, kind in KINDS.items()}.items()


def test_exactly_the_codes_of_views_and_exceptions_are_explained() -> None:
    """Views write their codes where they make the problem document; DRF's hook takes those of exceptions."""
    sources = "".join(path.read_text() for path in (ROOT / "portal").rglob("*.py"))
    written = set(re.findall(r"""\bproblem(?:_response)?\(\s*"([^"]+)\"""", sources))
    raised = {kind.default_code.replace("_", "-") for kind in api_exceptions(exceptions.APIException)}
    assert "wrong-role" in written
    assert written | raised == set(KINDS)


def test_the_copy_in_docs_is_current() -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert text == markdown(), "run `make openapi` and commit docs/reference/errors.md"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "document", [lambda: problem("not-found", ""), lambda: refusal(NothingToChange())], ids=["own", "refusal"]
)
def test_a_type_leads_to_its_entry_without_signing_in(document: object, settings: object) -> None:
    settings.BASE_URL = "https://portal.example.net/"  # type: ignore[attr-defined]
    address, _, code = document()["type"].partition("#")  # type: ignore[operator]
    assert address.startswith("https://portal.example.net/api/")
    page = Client().get(address.removeprefix("https://portal.example.net"))
    text = page.content.decode()
    assert page.status_code == 200
    assert f'id="{code}"' in text
    assert "<script>" not in text
    assert set(re.findall(r'<tr id="([^"]+)"', text)) == set(CODES)
