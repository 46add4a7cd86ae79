"""Rate limits: a token or a user that sends too many requests has to wait; others do not."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient

from portal.accounts.models import User
from portal.accounts.tokens import token_create
from portal.core import clock
from tests.integration.api.test_api_v1 import body, client
from tests.integration.isp import Isp

pytestmark = pytest.mark.django_db
VLLS = "/api/v1/vlls"


@pytest.fixture(autouse=True)
def limits(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.LONGLINE_API_READS_PER_MIN = 3
    settings.LONGLINE_API_WRITES_PER_MIN = 1
    # A minute that does not end during a test.
    now = clock.now().replace(second=20)
    monkeypatch.setattr("portal.api.rest.access_control.clock.now", lambda: now)
    cache.clear()


def test_token_over_its_limit_gets_429_with_retry_after(isp: Isp, alice: User) -> None:
    api = client(alice)
    assert [api.get(VLLS).status_code for _ in range(3)] == [200, 200, 200]
    answer = api.get(VLLS)
    assert (answer.status_code, answer["Content-Type"]) == (429, "application/problem+json")
    assert 39 <= int(answer["Retry-After"]) <= 41
    assert answer.json()["request_id"] == answer["X-Request-Id"]


def test_reads_do_not_count_as_writes_and_a_refused_write_does_nothing(isp: Isp, alice: User) -> None:
    api = client(alice)
    for _ in range(4):
        api.get(VLLS)
    assert api.post(VLLS, body(isp), format="json").status_code == 202
    assert api.post(VLLS, body(isp, description="second"), format="json").status_code == 429
    assert alice.memberships.get().customer.vlls.count() == 1


def test_each_token_has_its_own_limit(isp: Isp, alice: User) -> None:
    one, other = client(alice), client(alice)
    assert [one.get(VLLS).status_code for _ in range(4)][-1] == 429
    assert other.get(VLLS).status_code == 200


def test_more_tokens_do_not_raise_the_users_limit(isp: Isp, alice: User, ada: User, settings: Any) -> None:
    settings.LONGLINE_API_USER_LIMIT_FACTOR = 2
    answers = [client(alice).get(VLLS) for _ in range(10)]
    assert [answer.status_code for answer in answers] == [200] * 6 + [429] * 4
    assert 39 <= int(answers[-1]["Retry-After"]) <= 41
    # Another user of the same customer has a separate limit.
    assert client(ada).get(VLLS).status_code == 200


def test_writes_of_a_user_are_counted_apart_from_reads(isp: Isp, alice: User, settings: Any) -> None:
    settings.LONGLINE_API_USER_LIMIT_FACTOR = 2
    wanted = [body(isp, a_end={**body(isp)["a_end"], "outer_vlan": vlan}) for vlan in (100, 101, 102)]
    answers = [client(alice).post(VLLS, {**each, "z_end": each["a_end"]}, format="json") for each in wanted]
    assert [answer.status_code == 429 for answer in answers] == [False, False, True]
    assert client(alice).get(VLLS).status_code == 200


def test_forbidden_requests_of_a_token_do_not_count_for_its_user(
    isp: Isp, alice: User, settings: Any
) -> None:
    settings.LONGLINE_API_USER_LIMIT_FACTOR = 2
    busy = client(alice)
    assert [busy.get(VLLS).status_code for _ in range(9)] == [200] * 3 + [429] * 6
    assert client(alice).get(VLLS).status_code == 200


def test_factor_0_means_no_limit_for_a_user(isp: Isp, alice: User, settings: Any) -> None:
    settings.LONGLINE_API_USER_LIMIT_FACTOR = 0
    assert {client(alice).get(VLLS).status_code for _ in range(12)} == {200}


def test_session_counts_for_its_user(isp: Isp, alice: User) -> None:
    api = APIClient()
    api.force_login(alice)
    assert [api.get(VLLS).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_anonymous_request_is_401_and_not_counted(isp: Isp) -> None:
    assert {APIClient().get(VLLS).status_code for _ in range(5)} == {401}


def test_next_minute_starts_from_zero(isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    api = client(alice)
    assert [api.get(VLLS).status_code for _ in range(4)][-1] == 429
    later = clock.now() + timedelta(minutes=1)
    monkeypatch.setattr("portal.api.rest.access_control.clock.now", lambda: later)
    assert api.get(VLLS).status_code == 200


def test_setting_0_means_no_limit(isp: Isp, alice: User, settings: Any) -> None:
    settings.LONGLINE_API_READS_PER_MIN = 0
    _, plain = token_create(user=alice, name="bulk", now=clock.now())
    api = APIClient()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    assert {api.get(VLLS).status_code for _ in range(9)} == {200}


def enrol(address: str) -> Any:
    body = {"token": "wrong", "csr_pem": "wrong"}
    return APIClient().post("/api/v1/enroll", body, format="json", REMOTE_ADDR=address)


def test_address_that_guesses_enrolment_tokens_has_to_wait(db: None, settings: Any) -> None:
    settings.LONGLINE_ENROL_PER_MIN = 2
    guessed = [enrol("192.0.2.1") for _ in range(3)]
    assert [answer.status_code for answer in guessed] == [422, 422, 429]
    assert 39 <= int(guessed[-1]["Retry-After"]) <= 41
    assert enrol("192.0.2.2").status_code == 422
    settings.LONGLINE_ENROL_PER_MIN = 0
    assert enrol("192.0.2.1").status_code == 422
