"""Samples in quarantine on the NOC's pages and in its alarms, API and metrics."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from portal.accounts.models import User
from portal.audit.history import object_history
from portal.core import clock
from portal.telemetry.models import OperInterval, Quarantine
from portal.telemetry.sample_quarantine_accept import accepted_count
from portal.vll.models import Vll
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.processes.test_metrics import Value, scrape  # noqa: F401 - a fixture
from tests.integration.raised_alarms import noc_page
from tests.integration.telemetry.test_sample_quarantine import send
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice).vll
    OperInterval.objects.create(vll_id=vll.pk, status="op-up", began_at=clock.now() - timedelta(days=1))
    return vll


@pytest.fixture
def begin(isp: Isp, vll: Vll) -> datetime:
    """Return the begin of 5 minutes of samples from a router whose clock is two hours ahead."""
    begin = datetime.fromtimestamp((timezone.now().timestamp() // 300 - 2) * 300, tz=UTC)
    send(isp, vll, begin, duration_s=300)
    return begin


def test_quarantine_is_an_alarm_until_a_decision(vll: Vll, begin: datetime, nora: User) -> None:
    kept, browser = Quarantine.objects.get(), signed_in(nora)
    shown = noc_page(browser)
    assert "Samples from rhino are waiting for a decision" in shown
    assert f"Its clock was 2 h ahead; 30 samples of 1 line in {begin:%Y-%m}" in shown
    assert f'href="/noc/quarantine/{kept.pk}/"' in browser.get("/noc/").content.decode()
    browser.post(f"/noc/quarantine/{kept.pk}/accept/")
    assert "Samples with a wrong time or count, waiting for a decision: none" in noc_page(browser)


def test_page_previews_and_carries_out_the_acceptance(
    vll: Vll, begin: datetime, nora: User, alice: User
) -> None:
    kept, browser = Quarantine.objects.get(), signed_in(nora)
    page = f"/noc/quarantine/{kept.pk}/"
    listed = text(browser.get("/noc/quarantine/"))
    assert f"rhino {begin:%Y-%m} 2 h ahead {begin:%Y-%m-%d %H:%M:%S} UTC" in listed
    shown = text(browser.get(page))
    assert f"What accepting would do to {begin:%Y-%m}" in shown
    ahead = begin + timedelta(hours=2)
    # Without its zone the time would look equal to the corrected time, which pages show in the reader's zone.
    assert f"By the router's clock {ahead:%Y-%m-%d %H:%M:%S} UTC to" in shown
    # 30 samples of 1000 bytes in 300 s.
    assert "A 30 1 800 bit/s now not measured 400 bit/s now not measured" in shown
    answer = browser.post(f"{page}accept/", follow=True)
    assert "Accepted. The samples are being added" in text(answer)
    accepted_count(now=clock.now())
    shown = text(browser.get(page))
    assert "by nora" in shown
    assert "What accepting would do" not in shown
    refused = browser.post(f"{page}discard/", {"reason": "Too late."}, follow=True)
    assert "These samples have already been accepted and counted." in text(refused)
    assert "rhino" in text(browser.get("/noc/quarantine/?decided=1&router=rhino"))
    assert "Nothing has been decided yet" in text(browser.get("/noc/quarantine/?decided=1&router=hippo"))
    assert "Nothing waits for a decision" in text(browser.get("/noc/quarantine/"))
    assert "Quarantined samples were accepted" in text(browser.get(f"/noc/routers/{kept.router_id}/"))
    assert "Quarantined samples changed nora" in text(browser.get("/noc/audit/?what=quarantine"))
    (changed, _made) = object_history(Quarantine, kept.pk)
    assert (changed.by["username"], changed.after["state"]) == ("nora", "accepted")


def test_discarding_needs_a_reason(vll: Vll, begin: datetime, nora: User) -> None:
    kept, browser = Quarantine.objects.get(), signed_in(nora)
    answer = browser.post(f"/noc/quarantine/{kept.pk}/discard/", {"reason": " "})
    assert (answer.status_code, "Give a reason: it is kept" in text(answer)) == (422, True)
    answer = browser.post(f"/noc/quarantine/{kept.pk}/discard/", {"reason": "Lab."}, follow=True)
    assert "Discarded." in text(answer)
    assert "Lab." in text(answer)


def test_samples_without_a_time_cannot_be_accepted(isp: Isp, vll: Vll, nora: User) -> None:
    send(isp, vll, clock.now(), in_bytes=-1)
    shown = signed_in(nora).get(f"/noc/quarantine/{Quarantine.objects.get().pk}/")
    assert "They contain negative counts." in text(shown)
    assert "&quot;in_bytes&quot;: -1" in shown.content.decode()
    assert "Accept these samples" not in text(shown)


def test_routers_page_shows_its_clock(isp: Isp, vll: Vll, begin: datetime, nora: User) -> None:
    rhino = isp.routers["rhino"].pk
    assert "Clock 2 h ahead · Samples in quarantine" in text(signed_in(nora).get(f"/noc/routers/{rhino}/"))
    send(isp, vll, begin, duration_s=10, seq=99, ahead=timedelta(seconds=2))
    assert "Clock right · Samples in quarantine" in text(signed_in(nora).get(f"/noc/routers/{rhino}/"))


def test_month_shows_undecided_samples_to_its_reader(vll: Vll, begin: datetime, alice: User) -> None:
    assert "undecided: A 1, Z 0" in text(signed_in(alice).get(f"/vlls/{vll.pk}/months/"))


def test_api_lists_previews_and_decides_once(vll: Vll, begin: datetime, nora: User, alice: User) -> None:
    api, kept = client(nora), Quarantine.objects.get()
    (listed,) = api.get("/api/v1/quarantines?state=undecided&router=rhino").json()["results"]
    assert (listed["id"], listed["offset_ms"], listed["samples"], listed["lines"]) == (
        kept.pk,
        -7_200_000,
        30,
        1,
    )
    assert datetime.fromisoformat(listed["first_at"]) == begin
    (line,) = api.get(f"/api/v1/quarantines/{kept.pk}/lines").json()["results"]
    assert (line["vll"], line["ends"]) == (
        str(vll.pk),
        [{"side": "a", "samples": 30, "added": 1, "left_out": 0}],
    )
    assert (line["now"]["a_end"]["in"], line["accepted"]["a_end"]["in"]) == (None, 800)
    for _ in range(2):
        answer = api.post(f"/api/v1/quarantines/{kept.pk}/accept", headers={"Idempotency-Key": "accept-it"})
        assert (answer.status_code, answer.json()["state"], answer.json()["decided_by"]) == (
            200,
            "accepted",
            "nora",
        )
    late = api.post(f"/api/v1/quarantines/{kept.pk}/discard", {"reason": "Late."}, format="json")
    assert late.status_code == 409
    assert api.get("/api/v1/quarantines?state=undecided").json()["results"] == []
    assert client(alice).get("/api/v1/quarantines").status_code == 403


def test_prometheus_shows_the_clock_and_undecided_samples(
    vll: Vll,
    begin: datetime,
    nora: User,
    scrape: Callable[[], Value],  # noqa: F811
) -> None:
    value = scrape()
    assert value("quarantined_samples", router="rhino") == 30
    assert value("router_clock_offset_seconds", router="rhino") == -7200
    signed_in(nora).post(f"/noc/quarantine/{Quarantine.objects.get().pk}/discard/", {"reason": "Lab."})
    assert scrape()("quarantined_samples", router="rhino") is None
