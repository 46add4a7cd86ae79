"""Programs read English; error messages use the language of the request's sender."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.api.openapi.document import document
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import body, client
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db
GERMAN = {"Accept-Language": "de"}


@pytest.fixture
def api(alice: User) -> APIClient:
    return client(alice)


def test_problem_uses_the_language_of_the_request(api: APIClient) -> None:
    german, english = (api.get("/api/v1/vlls/7", headers=headers) for headers in (GERMAN, {}))
    assert (german["Content-Language"], english["Content-Language"]) == ("de", "en")
    german, english = (api.get("/api/v1/vlls?limit=no", headers=headers) for headers in (GERMAN, {}))
    assert english.json()["errors"][0]["detail"] == "Give a whole number from 1 to 200."
    assert german.json()["errors"][0]["detail"] == "Geben Sie eine ganze Zahl von 1 bis 200 an."
    assert german.json()["type"] == english.json()["type"]


def test_refusal_is_translated_and_keeps_its_facts(api: APIClient, isp: Isp) -> None:
    refused_order = body(isp) | {"svc_mtu": 60000}
    german, english = (
        api.post("/api/v1/vlls", refused_order, format="json", headers=headers).json()
        for headers in (GERMAN, {})
    )
    assert german["errors"][0]["facts"] == english["errors"][0]["facts"]
    assert german["title"] == "Die Anfrage wurde abgelehnt"


def test_missing_fields_are_reported_in_the_language(api: APIClient) -> None:
    response = api.post("/api/v1/vlls", {"a_end": 1}, format="json", headers=GERMAN).json()
    errors = {each["field"]: each["detail"] for each in response["errors"]}
    assert errors["z_end"] == "Dieses Feld ist zwingend erforderlich."


def test_documents_and_etags_do_not_depend_on_the_language(api: APIClient, vll: Vll) -> None:
    german, english = (api.get(f"/api/v1/vlls/{vll.pk}", headers=headers) for headers in (GERMAN, {}))
    assert german.content == english.content
    assert german["ETag"] == english["ETag"]
    assert german["Content-Language"] == "en"


def test_session_reads_problems_in_the_users_language(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(language="de")
    api = APIClient()
    api.force_login(alice)
    assert api.get("/api/v1/vlls/7")["Content-Language"] == "de"


def test_repeated_request_keeps_the_language_of_the_first_response(api: APIClient, isp: Isp) -> None:
    sent: dict[str, Any] = {"path": "/api/v1/vlls", "data": {"a_end": 1}, "format": "json"}
    first = api.post(**sent, headers=GERMAN | {"Idempotency-Key": "k"})
    again = api.post(**sent, headers={"Idempotency-Key": "k"})
    assert again["Idempotency-Replayed"] == "true"
    assert (again.content, again["Content-Language"]) == (first.content, "de")


def test_schema_is_always_english(api: APIClient) -> None:
    document.cache_clear()
    response = api.get("/api/v1/schema", headers=GERMAN)
    assert "Order, change and watch virtual leased lines" in response.json()["info"]["description"]
