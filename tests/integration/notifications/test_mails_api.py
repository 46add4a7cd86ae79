"""Choosing one's mails through the REST API."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.audit.models import EVENTS
from portal.core import clock
from portal.notifications.mail_recipients import mails_stop
from portal.notifications.models import MailOptOut
from tests.integration.api.test_api_v1 import client
from tests.integration.web_pages.browser import signed_in

pytestmark = pytest.mark.django_db

MAILS = "/api/v1/mail-preferences"
OF_A_MEMBER = dict.fromkeys(["orders", "failures", "lines", "status", "reports"], True)


def choose(user: User, body: Any, **headers: str) -> Any:
    return client(user).patch(MAILS, body, format="json", headers={"If-Match": "*", **headers})


def unwanted(user: User) -> set[str]:
    return set(user.mail_opt_outs.values_list("group", flat=True))


def test_everybody_has_the_groups_that_concern_them(bob: User, ada: User, nora: User) -> None:
    assert client(bob).get(MAILS).json() == OF_A_MEMBER
    assert client(ada).get(MAILS).json() == {**OF_A_MEMBER, "webhooks": True}
    assert client(nora).get(MAILS).json() == {"webhooks": True, "noc": True}


def test_what_is_named_changes_and_the_rest_stays(alice: User, bob: User) -> None:
    mails_stop(user=alice, group="lines", now=clock.now())
    answer = choose(alice, {"orders": False, "failures": True})
    assert (answer.status_code, answer.json()) == (200, {**OF_A_MEMBER, "orders": False, "lines": False})
    assert answer["ETag"] == client(alice).get(MAILS)["ETag"]
    assert (unwanted(alice), unwanted(bob)) == ({"orders", "lines"}, set())
    assert choose(alice, {"lines": True}).json()["lines"]


def test_the_page_shows_the_same(alice: User) -> None:
    choose(alice, {"reports": False})
    page = signed_in(alice).get("/account/notifications/").context["form"]
    assert {name for name, field in page.fields.items() if field.initial} == set(OF_A_MEMBER) - {"reports"}


@pytest.mark.parametrize(
    "body", [{"noc": True}, {"webhooks": False}, {"cows": True}, {"orders": "no"}, {"orders": None}, []]
)
def test_other_groups_and_other_words_are_refused(alice: User, body: Any) -> None:
    answer = choose(alice, body)
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert not MailOptOut.objects.exists()


def test_choosing_wants_the_version_that_was_read(alice: User) -> None:
    read = client(alice).get(MAILS)["ETag"]
    assert client(alice).patch(MAILS, {"orders": False}, format="json").status_code == 428
    assert choose(alice, {"orders": False}, **{"If-Match": read}).status_code == 200
    assert choose(alice, {"failures": False}, **{"If-Match": read}).status_code == 412
    assert unwanted(alice) == {"orders"}


def test_a_repeated_choice_is_done_once(alice: User) -> None:
    first = choose(alice, {"orders": False}, **{"Idempotency-Key": "one"})
    choose(alice, {"orders": True})
    assert choose(alice, {"orders": False}, **{"Idempotency-Key": "one"}).content == first.content
    assert unwanted(alice) == set()


def test_a_token_without_the_nocs_rights_leaves_the_nocs_mails_alone(nora: User) -> None:
    _, plain = token_create(user=nora, name="reads", now=clock.now(), scopes=["read", "order"])
    api = APIClient(HTTP_AUTHORIZATION=f"Bearer {plain}")
    assert api.get(MAILS).json() == {}
    answer = api.patch(MAILS, {"noc": False}, format="json", headers={"If-Match": "*"})
    assert (answer.status_code, unwanted(nora)) == (422, set())


def test_who_chose_is_on_record(alice: User) -> None:
    choose(alice, {"status": False})
    (row,) = EVENTS[MailOptOut].objects.values()
    assert (row["group"], row["pgh_context"]["username"]) == ("status", "alice")
