"""Idempotency-Key: one effect per key, and the same response for a repeated request."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from portal.accounts.models import User
from portal.api.models import KeptAnswer
from portal.api.rest.idempotency import answers_sweep
from portal.core import clock
from portal.inventory.models import Router
from portal.vll.models import Order, Vll
from tests.integration.allocation.test_allocation_races import at_once
from tests.integration.api.test_api_v1 import body, client
from tests.integration.awaited_locks import lock_is_awaited
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate

VLLS = "/api/v1/vlls"


def post(user: User, document: dict[str, Any], key: str) -> Any:
    return client(user).post(VLLS, document, format="json", headers={"Idempotency-Key": key})


def parts_of(response: Any) -> tuple[Any, ...]:
    return response.status_code, response["Content-Type"], response.get("Location"), response.content


@pytest.mark.django_db
def test_repeated_order_gets_the_first_response_byte_by_byte(isp: Isp, alice: User) -> None:
    first, again = (post(alice, body(isp), "k-1") for _ in range(2))
    assert first.status_code == 202
    assert parts_of(again) == parts_of(first)
    assert (first.get("Idempotency-Replayed"), again["Idempotency-Replayed"]) == (None, "true")
    assert Order.objects.count() == 1


@pytest.mark.django_db
def test_repeated_refusal_is_the_same_and_leaves_nothing(isp: Isp, alice: User) -> None:
    first = post(alice, body(isp, svc_mtu=67), "k-1")
    assert first.status_code == 422
    assert parts_of(post(alice, body(isp, svc_mtu=67), "k-1")) == parts_of(first)
    assert not requested()


@pytest.mark.django_db
def test_refusal_by_a_temporary_state_is_tried_again(isp: Isp, alice: User) -> None:
    Router.objects.filter(name="rhino").update(maintenance_since=clock.now())
    first = post(alice, body(isp), "k-1")
    assert (first.status_code, first.json()["type"]) == (
        409,
        "http://testserver/api/docs/errors/#router-in-maintenance",
    )
    Router.objects.filter(name="rhino").update(maintenance_since=None)
    again = post(alice, body(isp), "k-1")
    assert (again.status_code, "Idempotency-Replayed" in again) == (202, False)
    assert parts_of(post(alice, body(isp), "k-1")) == parts_of(again)
    assert Order.objects.count() == 1


@pytest.mark.django_db
def test_another_body_with_the_same_key_is_422_and_does_nothing(isp: Isp, alice: User) -> None:
    post(alice, body(isp), "k-1")
    response = post(alice, body(isp, description="another"), "k-1")
    assert (response.status_code, response.json()["type"]) == (
        422,
        "http://testserver/api/docs/errors/#idempotency-key-reused",
    )
    assert Order.objects.count() == 1


@pytest.mark.django_db
def test_key_belongs_to_its_user(isp: Isp, alice: User, nora: User) -> None:
    post(alice, body(isp), "k-1")
    other = body(isp)
    other["a_end"]["outer_vlan"] = 7
    other["z_end"] = {"port": isp.ports["hippo:host-cust2"].pk, "tagging": "untagged"}
    assert post(nora, other, "k-1").status_code == 202


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", '""', "ä", "a b", "x" * 256, '"unclosed'])
def test_malformed_key_is_400(isp: Isp, alice: User, key: str) -> None:
    response = client(alice).post(VLLS, body(isp), format="json", HTTP_IDEMPOTENCY_KEY=key)
    assert (response.status_code, response.json()["type"]) == (
        400,
        "http://testserver/api/docs/errors/#malformed-idempotency-key",
    )
    assert not Order.objects.exists()


@pytest.mark.django_db
def test_quotes_of_the_draft_syntax_do_not_belong_to_the_key(isp: Isp, alice: User) -> None:
    first = post(alice, body(isp), '"k-1"')
    assert post(alice, body(isp), "k-1").content == first.content


@pytest.mark.django_db
def test_repeated_removal_is_one_removal(isp: Isp, alice: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    responses = [
        client(alice).delete(f"{VLLS}/{vll.pk}", headers={"Idempotency-Key": "gone"}) for _ in range(2)
    ]
    assert parts_of(responses[0]) == parts_of(responses[1])
    assert responses[0].status_code == 202
    assert Order.objects.filter(action="delete").count() == 1


@pytest.mark.django_db
def test_repeated_change_needs_no_newer_etag(isp: Isp, alice: User) -> None:
    url = f"{VLLS}/{order(isp, alice).vll_id}"
    etag = client(alice).get(url)["ETag"]
    responses = [
        client(alice).patch(
            url, {"description": "new"}, format="json", headers={"If-Match": etag, "Idempotency-Key": "k"}
        )
        for _ in range(2)
    ]
    assert [response.status_code for response in responses] == [200, 200]
    assert responses[0].content == responses[1].content
    assert responses[1]["ETag"] == responses[0]["ETag"]


@pytest.mark.django_db
def test_key_is_free_after_24_hours(isp: Isp, alice: User) -> None:
    post(alice, body(isp, svc_mtu=67), "k-1")
    KeptAnswer.objects.update(answered_at=clock.now() - timedelta(hours=24, seconds=1))
    assert post(alice, body(isp), "k-1").status_code == 202
    assert KeptAnswer.objects.get().status == 202


@pytest.mark.django_db
def test_sweep_deletes_only_expired_keys(isp: Isp, alice: User) -> None:
    post(alice, body(isp, svc_mtu=67), "old")
    KeptAnswer.objects.update(answered_at=clock.now() - timedelta(hours=25))
    post(alice, body(isp, svc_mtu=67), "new")
    assert answers_sweep(now=clock.now()) == 1
    assert KeptAnswer.objects.get().key == "new"


@pytest.mark.django_db(transaction=True)
def test_64_parallel_orders_with_one_key_make_one_order(isp: Isp, alice: User) -> None:
    api, document = client(alice), body(isp)

    def one(_: int) -> Any:
        return api.post(VLLS, document, format="json", headers={"Idempotency-Key": "race"})

    responses: list[Any] = at_once(64, one)
    assert Order.objects.count() == Vll.objects.count() == KeptAnswer.objects.count() == 1
    done = [response for response in responses if response.status_code == 202]
    waiting = [response for response in responses if response.status_code == 409]
    assert len(done) >= 1
    assert len(done) + len(waiting) == 64
    assert len({response.content for response in done}) == 1
    assert sum("Idempotency-Replayed" not in response for response in done) == 1
    assert {response.json()["type"] for response in waiting} <= {
        "http://testserver/api/docs/errors/#idempotency-key-in-flight"
    }
    assert one(0).content == done[0].content


@pytest.mark.django_db(transaction=True)
def test_parallel_request_with_the_same_key_is_409_with_retry_after(isp: Isp, alice: User) -> None:
    def send() -> Any:
        try:
            return post(alice, body(isp), "k-1")
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        # A lock on the port's row delays every order for the port.
        with transaction.atomic():
            port = isp.ports["rhino:host-cust1"]
            type(port).objects.select_for_update().get(pk=port.pk)
            first = pool.submit(send)
            while not lock_is_awaited():
                assert not first.done()
            second = pool.submit(send).result()
        assert (second.status_code, int(second["Retry-After"]) >= 1) == (409, True)
        assert first.result().status_code == 202


@pytest.mark.django_db(transaction=True)
def test_response_and_effect_commit_together(isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_error(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed before the commit")

    with monkeypatch.context() as patched:
        patched.setattr("portal.api.rest.idempotency._keep", raise_error)
        with pytest.raises(RuntimeError):
            post(alice, body(isp), "k-1")
    assert (Order.objects.count(), KeptAnswer.objects.count()) == (0, 0)
    assert post(alice, body(isp), "k-1").status_code == 202
    assert Order.objects.get().pk == uuid.UUID(post(alice, body(isp), "k-1").json()["order"]["id"])
