"""ETags: readers learn that nothing changed, and writers cannot overwrite changes that they have not read."""

from collections import Counter
from typing import Any

import pytest

from portal.accounts.models import User
from portal.vll.models import Order, Vll
from tests.integration.allocation.test_allocation_races import at_once
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

VLLS = "/api/v1/vlls"


def patch(user: User, url: str, etag: str | None, description: Any = "new") -> Any:
    headers = {} if etag is None else {"If-Match": etag}
    return client(user).patch(url, {"description": description}, format="json", headers=headers)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["vlls/{vll}", "orders/{order}", "jobs/{order}", "ports/{port}"])
def test_unchanged_document_is_304_without_body(isp: Isp, alice: User, path: str) -> None:
    placed = order(isp, alice)
    port = isp.ports["rhino:host-cust1"].pk
    url = "/api/v1/" + path.format(vll=placed.vll_id, order=placed.pk, port=port)
    api = client(alice)
    first = api.get(url)
    assert first["ETag"].startswith('"')
    again = api.get(url, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert api.get(url, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.django_db
def test_etag_changes_with_every_shown_fact(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    api, url = client(alice), f"{VLLS}/{vll.pk}"
    before = api.get(url)["ETag"]
    activate(vll)
    after = api.get(url, headers={"If-None-Match": before})
    assert (after.status_code, after["ETag"] != before) == (200, True)


@pytest.mark.django_db
def test_change_without_if_match_is_428_and_with_an_old_etag_412(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    url = f"{VLLS}/{vll.pk}"
    etag = client(alice).get(url)["ETag"]
    assert patch(alice, url, None).status_code == 428
    assert patch(alice, url, f"W/{etag}").status_code == 412
    assert patch(alice, url, '"stale"').status_code == 412
    vll.refresh_from_db()
    assert vll.description == "ZRH-AMS"
    changed = patch(alice, url, etag)
    assert (changed.status_code, changed.json()["description"]) == (200, "new")
    assert changed["ETag"] == client(alice).get(url)["ETag"]
    assert patch(alice, url, etag, "newer").status_code == 412
    assert patch(alice, url, "*", "newest").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_failed_precondition_is_not_stored_for_the_key(isp: Isp, alice: User) -> None:
    url = f"{VLLS}/{order(isp, alice).vll_id}"
    api, key = client(alice), {"Idempotency-Key": "one"}

    def change(**headers: str) -> int:
        return api.patch(url, {"description": "new"}, format="json", headers={**key, **headers}).status_code

    assert change() == 428
    assert change(**{"If-Match": '"stale"'}) == 412
    assert change(**{"If-Match": api.get(url)["ETag"]}) == 200
    assert Vll.objects.get().description == "new"


@pytest.mark.django_db
@pytest.mark.parametrize("description", ["x" * 101, None, 7, ["x"], "a\x00b"])
def test_invalid_description_is_422(isp: Isp, alice: User, description: Any) -> None:
    vll = order(isp, alice).vll
    assert patch(alice, f"{VLLS}/{vll.pk}", "*", description).status_code == 422
    assert Vll.objects.get().description == "ZRH-AMS"


@pytest.mark.django_db
def test_strangers_get_404_and_viewers_403_for_changes(
    isp: Isp, alice: User, bob: User, charlie: User
) -> None:
    url = f"{VLLS}/{order(isp, alice).vll_id}"
    assert patch(charlie, url, "*").status_code == 404
    assert patch(charlie, url, None).status_code == 404
    assert patch(bob, url, "*").status_code == 403
    assert Vll.objects.get().description == "ZRH-AMS"


@pytest.mark.django_db
def test_removal_checks_if_match_when_sent(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    url = f"{VLLS}/{vll.pk}"
    assert client(alice).delete(url, headers={"If-Match": '"stale"'}).status_code == 412
    assert not Order.objects.filter(action="delete").exists()
    etag = client(alice).get(url)["ETag"]
    assert client(alice).delete(url, headers={"If-Match": etag}).status_code == 202


@pytest.mark.django_db(transaction=True)
def test_one_of_64_concurrent_changes_of_one_version_succeeds(isp: Isp, alice: User) -> None:
    url = f"{VLLS}/{order(isp, alice).vll_id}"
    api = client(alice)
    etag = api.get(url)["ETag"]

    def one(number: int) -> Any:
        document = {"description": f"by {number}"}
        return api.patch(url, document, format="json", headers={"If-Match": etag})

    answers: list[Any] = at_once(64, one)
    assert Counter(answer.status_code for answer in answers) == {200: 1, 412: 63}
    won = next(answer for answer in answers if answer.status_code == 200)
    assert Vll.objects.get().description == won.json()["description"]
