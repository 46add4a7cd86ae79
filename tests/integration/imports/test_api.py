"""Imports over the API: the file as CSV or JSON, once per key, and only for users with the right."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Customer, User
from portal.accounts.tokens import token_create
from portal.api.v1.network.imports import _LARGEST
from portal.core import clock
from portal.imports.models import Import
from portal.inventory.models import Site
from tests.integration.api.test_api_v1 import client
from tests.integration.imports.files import work

pytestmark = pytest.mark.django_db
PATH = "/api/v1/imports"
SITES = "name,latitude,longitude\nZürich,47.3769,8.5417\nBern,91,0\n"


def send(user: User, table: str | bytes = SITES, query: str = "?kind=sites&dry_run=true", **more: Any) -> Any:
    data = table if isinstance(table, bytes) else table.encode()
    return client(user).generic("POST", PATH + query, data, content_type="text/csv", **more)


def api_with(user: User, *scopes: str) -> APIClient:
    _, plain = token_create(user=user, name="-".join(scopes), scopes=list(scopes), now=clock.now())
    return APIClient(headers={"Authorization": f"Bearer {plain}"})


def test_dry_run_and_import(nora: User) -> None:
    response = send(nora)
    assert (response.status_code, response.json()["state"]) == (202, "checking")
    this, api = Import.objects.get(), client(nora)
    work(this)
    found = api.get(response["Location"]).json()
    assert {name: found[name] for name in ("state", "rows", "new", "same", "refused", "made")} == {
        "state": "checked",
        "rows": 2,
        "new": 1,
        "same": 0,
        "refused": 1,
        "made": 0,
    }
    [row] = api.get(f"{PATH}/{this.pk}/errors").json()["results"]
    assert (row["line"], row["cells"]["name"]) == (3, "Bern")
    [refusal] = row["refusals"]
    assert (refusal["column"], refusal["code"]) == ("latitude", "out-of-range")
    assert refusal["detail"] == "91.0 is not between -90 and 90."
    assert api.post(f"{PATH}/{this.pk}/begin").status_code == 202
    assert work(this).state == "completed"
    assert Site.objects.get().name == "Zürich"
    assert api.post(f"{PATH}/{this.pk}/cancel").status_code == 409


def test_corrected_errors_can_be_sent_again(nora: User) -> None:
    send(nora, query="?kind=sites")
    this = work(Import.objects.get())
    table = b"".join(client(nora).get(f"{PATH}/{this.pk}/errors.csv")).decode()  # type: ignore[call-overload]
    assert table.splitlines()[0] == "name,latitude,longitude,import_line,import_errors"
    assert "latitude: 91.0 is not between -90 and 90." in table
    send(nora, table.replace("91", "46.9", 1), query="?kind=sites")
    again = work(Import.objects.exclude(pk=this.pk).get())
    assert (again.made, Site.objects.count()) == (1, 2)


def test_json_body_is_accepted(nora: User) -> None:
    document = {"kind": "sites", "dry_run": False, "csv": SITES}
    assert client(nora).post(PATH, document, format="json").status_code == 202
    assert work(Import.objects.get()).made == 1


def test_same_key_stages_a_file_once_of_any_size(nora: User) -> None:
    large = "name\n" + "".join(f"{n:099d}\n" for n in range(12_000))
    responses = [send(nora, large, HTTP_IDEMPOTENCY_KEY="one") for _ in range(2)]
    assert [each.status_code for each in responses] == [202, 202]
    assert responses[0].json() == responses[1].json()
    assert Import.objects.count() == 1


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 422, "invalid"),
        ("?kind=planets", 422, "invalid"),
        ("?kind=sites&dry_run=perhaps", 422, "invalid"),
        ("?kind=sites&colour=red", 422, "invalid"),
        ("?kind=routers", 422, "table-column-unknown"),
        ("?colour=red", 422, "invalid"),
    ],
)
def test_invalid_request_is_refused(nora: User, query: str, status: int, code: str) -> None:
    response = send(nora, query=query)
    assert response.status_code == status
    assert response.json()["type"].endswith(f"#{code}")
    assert not Import.objects.exists()


@pytest.mark.parametrize("key", [{}, {"HTTP_IDEMPOTENCY_KEY": "one"}], ids=["", "with a key"])
def test_oversized_file_is_refused_by_its_length(nora: User, key: dict[str, str]) -> None:
    response = send(nora, b"name\n", CONTENT_LENGTH=str(100 * 2**20), **key)
    assert (response.status_code, response.json()["type"].partition("#")[2]) == (413, "too-large")
    assert str(_LARGEST) in response.json()["detail"]
    assert not Import.objects.exists()


def test_only_the_noc_imports_and_only_its_admins_import_users(
    nora: User, nina: User, alice: User, dairy: Customer
) -> None:
    users = "customer,email,role\nAlpine Dairy,dora@alpine.example,viewer\n"
    assert send(alice).status_code == 403
    assert send(nora, users, query="?kind=users").status_code == 403
    assert not Import.objects.exists()
    api = api_with(nina, "noc")
    document = {"kind": "users", "csv": users}
    refused = api.post(PATH, document, format="json")
    assert (refused.status_code, "scope team" in refused.json()["detail"]) == (403, True)
    assert send(nina, users, query="?kind=users").status_code == 202


def test_import_of_users_is_visible_only_to_those_who_may_import_users(nora: User, nina: User) -> None:
    users = "customer,email,role\nNobody Knows,dora@alpine.example,viewer\n"
    send(nina, users, query="?kind=users&dry_run=true")
    this = work(Import.objects.get())
    assert this.refused == 1
    for api in (client(nora), api_with(nina, "noc")):
        assert api.get(f"{PATH}/{this.pk}/errors").status_code == 403
        assert api.get(f"{PATH}/{this.pk}/errors.csv").status_code == 403
        for act in ("begin", "cancel"):
            assert api.post(f"{PATH}/{this.pk}/{act}").status_code == 403
    assert api_with(nina, "noc", "team").get(f"{PATH}/{this.pk}/errors").status_code == 200
    ended = client(nina).post(f"{PATH}/{this.pk}/cancel").json()
    assert (ended["state"], ended["begun_by"], ended["ended_by"]) == ("cancelled", None, "nina")


@pytest.mark.parametrize("body", ["", "\n", "name\n"])
def test_file_without_rows_is_refused(nora: User, body: str) -> None:
    response = send(nora, body)
    assert (response.status_code, response.json()["type"].partition("#")[2]) == (422, "table-empty")
