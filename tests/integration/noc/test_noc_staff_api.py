"""NOC staff in the API: the list of accounts, and closing the account of a person who leaves."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.core import clock
from tests.integration.accounts.codes import with_totp
from tests.integration.api.test_api_v1 import client

pytestmark = pytest.mark.django_db


def close(by: User, person: User, **headers: str) -> Any:
    return client(by).post(f"/api/v1/people/{person.pk}/close", format="json", headers=headers)


def test_noc_staff_see_each_other(nora: User, nina: User, alice: User) -> None:
    with_totp(nora)
    found = client(nora).get("/api/v1/noc-staff").json()["results"]
    assert [(row["username"], row["noc_role"], row["has_second_factor"]) for row in found] == [
        ("nora", "noc", True),
        ("nina", "nocAdmin", False),
    ]
    assert client(alice).get("/api/v1/noc-staff").status_code == 403


def test_account_is_readable_by_its_owner_and_the_noc(nora: User, alice: User, bob: User) -> None:
    seen = {who: client(who).get(f"/api/v1/people/{alice.pk}").status_code for who in (nora, alice, bob)}
    assert seen == {nora: 200, alice: 200, bob: 404}
    assert client(alice).get(f"/api/v1/people/{alice.pk}").json() == {
        "id": alice.pk,
        "username": "alice",
        "full_name": "",
        "email": "",
        "noc_role": "none",
        "is_open": True,
        "last_sign_in": None,
        "has_second_factor": False,
    }


def test_noc_admin_closes_an_account(nina: User, nora: User) -> None:
    hers = client(nora)
    first, again = (close(nina, nora, **{"Idempotency-Key": "leaves"}) for _ in range(2))
    assert (first.status_code, first.json()["is_open"]) == (200, False)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert hers.get("/api/v1/noc-staff").status_code == 401


def test_only_noc_admins_close_and_the_last_one_stays(nina: User, nora: User, alice: User) -> None:
    assert [close(who, alice).status_code for who in (nora, alice)] == [403, 403]
    refused = close(nina, nina)
    assert refused.status_code == 409
    assert refused.json()["errors"][0]["code"] == "last-noc-admin"


def test_token_without_the_noc_scope_closes_nobody(nina: User, alice: User) -> None:
    _, plain = token_create(user=nina, name="narrow", scopes=["read", "order"], now=clock.now())
    narrow, place = APIClient(headers={"Authorization": f"Bearer {plain}"}), f"/api/v1/people/{alice.pk}"
    assert [narrow.get(place).status_code, narrow.post(f"{place}/close").status_code] == [404, 404]
