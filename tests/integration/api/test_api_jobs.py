"""The job resource: the progress and the result of an order."""

from typing import Any

import pytest

from portal.accounts.models import User
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import CONFLICT, activate, answer

pytestmark = pytest.mark.django_db


def steps(job: Any) -> list[tuple[str, str | None, str]]:
    return [(step["end"], step["router"], step["status"]) for step in job["steps"]]


def test_job_shows_each_ends_step_and_retry_after(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    api, url = client(alice), f"/api/v1/jobs/{placed.pk}"
    response = api.get(url)
    assert int(response["Retry-After"]) >= 1
    job = response.json()
    assert (job["status"], job["finished_at"]) == ("pending", None)
    assert steps(job) == [("a", "rhino", "waiting"), ("z", "hippo", "waiting")]
    answer(placed.vll, "a", "verified")
    answer(placed.vll, "z", "pending", reason={"code": "no_route", "message": "no route to rhino"})
    job = api.get(url).json()
    assert job["status"] == "running"
    assert steps(job) == [("a", "rhino", "verified"), ("z", "hippo", "pending")]
    assert job["steps"][1]["reason"]["code"] == "no_route"


def test_succeeded_job_links_to_its_result_and_never_changes(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    activate(placed.vll)
    api, url = client(alice), f"/api/v1/jobs/{placed.pk}"
    ended = api.get(url)
    assert "Retry-After" not in ended
    assert (ended.json()["status"], steps(ended.json())) == (
        "succeeded",
        [("a", None, "verified"), ("z", None, "verified")],
    )
    assert api.get(ended.json()["result"]).json()["id"] == str(placed.vll_id)
    assert api.get(ended.json()["order"]).json()["state"] == "completed"
    removal = api.delete(f"/api/v1/vlls/{placed.vll_id}").json()["order"]["id"]
    answer(placed.vll, "a", "removed")
    assert api.get(url, headers={"If-None-Match": ended["ETag"]}).status_code == 304
    assert steps(api.get(f"/api/v1/jobs/{removal}").json()) == [
        ("a", "rhino", "removed"),
        ("z", "hippo", "waiting"),
    ]


def test_failed_job_says_why_and_that_it_was_undone(isp: Isp, alice: User) -> None:
    placed = order(isp, alice)
    answer(placed.vll, "a", "conflict", reason=CONFLICT, permanent=True)
    answer(placed.vll, "a", "removed")
    answer(placed.vll, "z", "removed")
    job = client(alice).get(f"/api/v1/jobs/{placed.pk}").json()
    assert (job["status"], job["failure"]["code"]) == ("failed", CONFLICT["code"])
    assert [step["status"] for step in job["steps"]] == ["undone", "undone"]


def test_stranger_gets_404_for_a_job(isp: Isp, alice: User, charlie: User) -> None:
    assert client(charlie).get(f"/api/v1/jobs/{order(isp, alice).pk}").status_code == 404
