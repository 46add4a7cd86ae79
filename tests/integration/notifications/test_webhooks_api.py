"""Webhooks through the REST API."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import Customer, User
from portal.accounts.tokens import token_create
from portal.audit.models import EVENTS
from portal.core import clock
from portal.notifications.models import Delivery, Webhook
from portal.notifications.webhook_delivery import webhook_deliver
from portal.notifications.webhook_operations import MOST_PER_CUSTOMER, webhook_test
from tests.integration.api.test_api_v1 import client
from tests.integration.notifications.receiver import Receiver

pytestmark = pytest.mark.django_db

URL = "https://hooks.example.net/in"


def add(user: User, **body: Any) -> Any:
    return client(user).post("/api/v1/webhooks", {"url": URL, **body}, format="json")


def test_an_admin_adds_one_and_sees_its_secret_once(ada: User) -> None:
    answer = add(ada, description="Tickets", types=["vll.down", "vll.up"])
    made = answer.json()
    assert answer.status_code == 201
    assert made["secret"].startswith("whsec_")
    assert answer["Cache-Control"] == "no-store"
    assert (made["customer"], made["types"], made["enabled"]) == (
        "Alpine Dairy",
        ["vll.down", "vll.up"],
        True,
    )
    read = client(ada).get(answer["Location"])
    assert "secret" not in read.json()
    assert read.json() == {name: value for name, value in made.items() if name != "secret"}
    assert [row["id"] for row in client(ada).get("/api/v1/webhooks").json()["results"]] == [made["id"]]


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_other_members_may_know_that_it_is_there_and_no_more(
    who: str, webhook: Webhook, request: pytest.FixtureRequest
) -> None:
    api = client(request.getfixturevalue(who))
    assert add(request.getfixturevalue(who)).status_code == 403
    assert api.get("/api/v1/webhooks").json()["results"] == []
    here = f"/api/v1/webhooks/{webhook.pk}"
    for answer in (
        api.get(here),
        api.patch(here, {"enabled": False}, format="json", headers={"If-Match": "*"}),
        api.delete(here),
        api.post(f"{here}/secret"),
        api.post(f"{here}/test"),
        api.get(f"{here}/deliveries"),
    ):
        assert answer.status_code == 403
    webhook.refresh_from_db()
    assert webhook.disabled_at is None


def test_noc_staff_look_and_noc_admins_manage(webhook: Webhook, nora: User, nina: User) -> None:
    here = f"/api/v1/webhooks/{webhook.pk}"
    assert client(nora).get(here).status_code == 200
    assert client(nora).get(f"{here}/deliveries").status_code == 200
    assert client(nora).post(f"{here}/test").status_code == 403
    assert add(nora).status_code == 403
    assert client(nina).post(f"{here}/test").status_code == 201
    own = add(nina)
    assert (own.status_code, own.json()["customer"]) == (201, None)
    hers = add(nina, customer="Alpine Dairy")
    assert hers.json()["customer"] == "Alpine Dairy"


def test_the_nocs_own_is_nothing_to_a_customer(nina: User, ada: User) -> None:
    own = add(nina).json()["id"]
    assert client(ada).get(f"/api/v1/webhooks/{own}").status_code == 404
    assert client(ada).get("/api/v1/webhooks").json()["results"] == []


def test_an_admin_of_two_customers_has_to_say_whose(ada: User, bakery: Customer, dairy: Customer) -> None:
    ada.memberships.create(customer=bakery, role="admin")
    assert add(ada).json()["errors"][0]["field"] == "customer"
    assert add(ada, customer="Basel Bakery").json()["customer"] == "Basel Bakery"
    ada.memberships.filter(customer=bakery).update(role="operator")
    assert add(ada, customer="Basel Bakery").status_code == 422


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"url": "https://10.0.0.1/"}, "webhook-address-not-public"),
        ({"url": "http://hooks.example.net/"}, "webhook-plain-http"),
        ({"url": "https://hooks.example.net:6379/"}, "webhook-port-refused"),
        ({"url": "gopher://x/"}, "webhook-url-unreadable"),
        ({"types": ["vll.exploded"]}, "invalid_choice"),
        ({"types": "vll.up"}, "not_a_list"),
        ({"colour": "red"}, "unknown_field"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(ada: User, body: dict[str, Any], code: str) -> None:
    answer = add(ada, **body)
    assert answer.status_code == 422
    assert [entry["code"] for entry in answer.json()["errors"]] == [code]
    assert not Webhook.objects.exists()


def test_there_are_so_many_and_no_more(ada: User) -> None:
    assert [add(ada).status_code for _ in range(MOST_PER_CUSTOMER + 1)] == [201] * MOST_PER_CUSTOMER + [409]


def test_changing_wants_the_version_that_was_read(ada: User, webhook: Webhook) -> None:
    api, here = client(ada), f"/api/v1/webhooks/{webhook.pk}"
    read = api.get(here)
    assert api.patch(here, {"types": []}, format="json").status_code == 428
    changed = api.patch(
        here, {"types": ["vll.down"], "enabled": False}, format="json", headers={"If-Match": read["ETag"]}
    )
    assert changed.status_code == 200
    assert (changed.json()["types"], changed.json()["disabled_because"]) == (["vll.down"], "byHand")
    stale = api.patch(here, {"enabled": True}, format="json", headers={"If-Match": read["ETag"]})
    assert stale.status_code == 412
    again = api.patch(here, {"enabled": True}, format="json", headers={"If-Match": changed["ETag"]})
    assert again.json()["enabled"] is True
    assert api.delete(here).status_code == 204
    assert api.get(here).status_code == 404


def test_a_new_secret_is_in_one_answer_only(ada: User, webhook: Webhook) -> None:
    answer = client(ada).post(f"/api/v1/webhooks/{webhook.pk}/secret")
    assert answer.status_code == 201
    assert answer.json()["secret"].startswith("whsec_")
    assert answer["Cache-Control"] == "no-store"
    read = client(ada).get(f"/api/v1/webhooks/{webhook.pk}").json()
    assert read["previous_until"] == answer.json()["previous_until"]


def test_a_test_is_delivered_and_sent_again(ada: User, webhook: Webhook, receiver: Receiver) -> None:
    api = client(ada)
    response = api.post(f"/api/v1/webhooks/{webhook.pk}/test", headers={"Idempotency-Key": "test-once-1"})
    again = api.post(f"/api/v1/webhooks/{webhook.pk}/test", headers={"Idempotency-Key": "test-once-1"})
    assert response.json() == again.json()
    webhook_deliver(webhook_id=webhook.pk, clock=clock.now)
    found = api.get(response["Location"]).json()
    assert (found["state"], found["log"][0]["status"]) == ("delivered", 204)
    assert [row["id"] for row in api.get(f"/api/v1/webhooks/{webhook.pk}/deliveries").json()["results"]] == [
        found["id"]
    ]
    redelivered = api.post(f"/api/v1/webhook-deliveries/{found['id']}/redeliver")
    assert redelivered.json()["state"] == "pending"
    assert api.post(f"/api/v1/webhook-deliveries/{found['id']}/redeliver").status_code == 409
    webhook_deliver(webhook_id=webhook.pk, clock=clock.now)
    assert [got.headers["webhook-id"] for got in receiver.got] == [found["webhook_id"]] * 2


def test_the_catalogue_is_for_everybody_who_signs_in(bob: User) -> None:
    names = [row["name"] for row in client(bob).get("/api/v1/event-types").json()["results"]]
    assert {"order.accepted", "vll.down", "webhook.test"} <= set(names)


def test_who_did_what_is_on_record_without_the_secret(ada: User, nora: User) -> None:
    made = add(ada).json()
    history = client(nora).get(f"/api/v1/webhooks/{made['id']}/history").json()["results"]
    assert [(entry["operation"], entry["by"]["username"]) for entry in history] == [("insert", "ada")]
    assert not any(made["secret"][6:] in str(row) for row in EVENTS[Webhook].objects.values())


def test_deliveries_of_others_are_not_found(webhook: Webhook, charlie: User) -> None:
    delivery = webhook_test(webhook=webhook, now=clock.now())
    here = f"/api/v1/webhook-deliveries/{delivery.pk}"
    assert client(charlie).get(here).status_code == 404
    assert client(charlie).post(f"{here}/redeliver").status_code == 404
    assert Delivery.objects.get().state == "pending"


class TestTokens:
    """A webhook gets all events as long as it exists, so a token needs the scope to create one."""

    def writes(self, user: User, webhook: Webhook, scopes: list[str]) -> set[int]:
        delivery = webhook_test(webhook=webhook, now=clock.now())
        Delivery.objects.filter(pk=delivery.pk).update(state="delivered", next_try_at=None)
        _, plain = token_create(user=user, name="test", scopes=scopes, now=clock.now())
        api, here = APIClient(headers={"Authorization": f"Bearer {plain}"}), f"/api/v1/webhooks/{webhook.pk}"
        if user.noc_role == "none" or "noc" in scopes:
            assert {api.get(place).status_code for place in ("/api/v1/webhooks", here)} == {200}
        new = {"url": URL, "customer": "Alpine Dairy"}
        return {
            api.post("/api/v1/webhooks", new, format="json").status_code,
            api.post(f"{here}/secret").status_code,
            api.post(f"{here}/test").status_code,
            api.post(f"/api/v1/webhook-deliveries/{delivery.pk}/redeliver").status_code,
            api.patch(here, {"enabled": False}, format="json", headers={"If-Match": "*"}).status_code,
            api.delete(here).status_code,
        }

    @pytest.mark.parametrize(
        ("who", "scopes"),
        [("ada", ["read", "order"]), ("ada", ["read", "order", "team"]), ("nina", ["read", "order", "noc"])],
    )
    def test_one_that_was_not_made_for_it_reads_webhooks_and_changes_none(
        self, who: str, scopes: list[str], webhook: Webhook, request: pytest.FixtureRequest
    ) -> None:
        assert self.writes(request.getfixturevalue(who), webhook, scopes) == {403}
        found = Webhook.objects.get()
        assert (found.pk, found.secret, found.disabled_at) == (webhook.pk, webhook.secret, None)

    @pytest.mark.parametrize(("who", "scopes"), [("ada", ["webhooks"]), ("nina", ["noc", "webhooks"])])
    def test_one_that_was_made_for_it_changes_them(
        self, who: str, scopes: list[str], webhook: Webhook, request: pytest.FixtureRequest
    ) -> None:
        assert self.writes(request.getfixturevalue(who), webhook, scopes) == {200, 201, 204}

    def test_of_a_noc_admin_it_makes_none_of_the_nocs_without_the_nocs_scope(self, nina: User) -> None:
        answers = {}
        for scopes in (["webhooks"], ["noc"], ["noc", "webhooks"]):
            _, plain = token_create(user=nina, name="test", scopes=scopes, now=clock.now())
            api = APIClient(headers={"Authorization": f"Bearer {plain}"})
            answers["+".join(scopes)] = api.post("/api/v1/webhooks", {"url": URL}, format="json").status_code
        assert answers == {"webhooks": 403, "noc": 403, "noc+webhooks": 201}
