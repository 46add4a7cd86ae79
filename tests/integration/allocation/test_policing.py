"""A line is limited to its CIR where its routers support policing; other ends show the reason."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.core.network.bandwidth_profile import Policing
from portal.inventory.models import ObservedRouter, Port
from portal.inventory.reported_observation import EndObservation, ObservedReport
from portal.telemetry.observation_ingest import observation_take
from portal.vll.models import Vll
from provisioning.intent_document import intent_for
from provisioning.intent_rows import router_rows
from tests.integration.api.test_api_v1 import client
from tests.integration.isp import GBIT, Isp
from tests.integration.observed_reports import changed, observed_end, observed_report
from tests.integration.orders import end, order
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import activate, answer
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db


def polices(isp: Isp, router: str, policing: str, version: str = "25.10-release") -> None:
    observed = ObservedRouter.objects.filter(router=isp.routers[router])
    assert observed.update(policing=policing, vpp_version=version) == 1


def bandwidth(isp: Isp, router: str) -> Any:
    intent = intent_for(router=router, generation=1, rows=list(router_rows(isp.routers[router]).ends))
    (present,) = json.loads(intent.document())["present"]
    return present.get("bandwidth")


def shown(user: User, vll: Vll) -> dict[str, Any]:
    return client(user).get(f"/api/v1/vlls/{vll.pk}").json()


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    """Return a line from a whole port of Rhino to a VLAN of Hippo."""
    return order(isp, alice, a_end=end(isp, "rhino:host-cust1", "untagged")).vll


PROFILE = {"cir_bps": GBIT, "cbs_bytes": 1_250_000, "eir_bps": 0, "ebs_bytes": 0}


@pytest.mark.parametrize(
    ("policing", "port", "vlan"),
    [("none", None, None), ("port", PROFILE, None), ("subinterface", PROFILE, PROFILE)],
)
def test_intent_polices_where_the_vpp_can(isp: Isp, line: Vll, policing: str, port: Any, vlan: Any) -> None:
    polices(isp, "rhino", policing)
    polices(isp, "hippo", policing)
    assert (bandwidth(isp, "rhino"), bandwidth(isp, "hippo")) == (port, vlan)


def test_router_without_reports_does_not_police(isp: Isp, alice: User, line: Vll) -> None:
    ObservedRouter.objects.all().delete()
    assert bandwidth(isp, "rhino") is None
    assert shown(alice, line)["a_end"]["unpoliced_reason"] == {
        "code": "router_silent",
        "message": "rhino has not reported yet what it can police.",
    }


def test_each_end_shows_policing_and_the_line_needs_both(isp: Isp, alice: User, line: Vll) -> None:
    polices(isp, "rhino", "port")
    polices(isp, "hippo", "port")
    activate(line)
    document = shown(alice, line)
    assert (document["policed"], document["cir_bps"]) == (False, GBIT)
    assert [Port.objects.get(pk=each.port_id).booked_bps for each in line.ends.all()] == [GBIT, GBIT]
    assert [document[name]["unpoliced_reason"]["code"] for name in ("a_end", "z_end")] == [
        "not_confirmed",
        "whole_ports_only",
    ]
    answer(line, "a", "verified", policed=True)
    document = shown(alice, line)
    assert document["policed"] is False
    assert (document["a_end"]["policed"], document["a_end"]["unpoliced_reason"]) == (True, None)
    polices(isp, "hippo", "subinterface")
    answer(line, "z", "verified", policed=True)
    assert shown(alice, line)["policed"] is True


def test_page_shows_why_an_end_is_not_policed(isp: Isp, alice: User, nora: User, line: Vll) -> None:
    polices(isp, "hippo", "port")
    answer(line, "a", "verified", policed=True)
    answer(line, "z", "verified")
    page = text(signed_in(nora).get(f"/vlls/{line.pk}/"))
    assert "Policed yes, by the bandwidth profile" in page
    assert "Policed no hippo can only police whole ports: its VPP, 25.10-release, or its agent cannot" in page
    assert "1 Gbit/s, not enforced at both ends" in page
    shown_to_alice = text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "1 Gbit/s, not enforced at both ends" in shown_to_alice
    assert "25.10" not in shown_to_alice


@pytest.fixture
def report() -> ObservedReport:
    return observed_report(vpp_version="26.06-release", policing=Policing.SUBINTERFACE)


def take(isp: Isp, report: ObservedReport, *ends: EndObservation, now: datetime | None = None) -> None:
    report = changed(report, ends=ends)
    assert observation_take(router=isp.routers["hippo"], report=report, now=now or clock.now())


def messages_to_hippo(isp: Isp) -> int:
    return sum(args == [isp.routers["hippo"].pk] for _, args in requested())


def test_vpp_that_gains_policing_gets_an_intent_immediately(
    isp: Isp, line: Vll, report: ObservedReport
) -> None:
    polices(isp, "hippo", "port")
    activate(line)
    before = messages_to_hippo(isp)
    take(isp, report)
    assert (bandwidth(isp, "hippo"), messages_to_hippo(isp)) == (PROFILE, before + 1)
    take(isp, changed(report, sent_ms=2))
    assert messages_to_hippo(isp) == before + 1


def test_policing_support_is_remembered_while_vpp_is_disconnected(
    isp: Isp, line: Vll, report: ObservedReport
) -> None:
    activate(line)
    take(isp, report)
    before = messages_to_hippo(isp)
    take(isp, changed(report, sent_ms=2, vpp_connected=False, policing=Policing.NONE))
    assert (bandwidth(isp, "hippo"), messages_to_hippo(isp)) == (PROFILE, before)
    take(isp, changed(report, sent_ms=3))
    assert bandwidth(isp, "hippo") == PROFILE


def test_end_is_unpoliced_after_its_agent_reports_a_missing_policer(
    isp: Isp, line: Vll, report: ObservedReport
) -> None:
    answer(line, "a", "verified", policed=True)
    answer(line, "z", "verified", policed=True)
    policed_end = observed_end(line.pk, "z", policed=True)
    now = clock.now()
    take(isp, report, policed_end, now=now)
    assert Vll.objects.get(pk=line.pk).policed is True
    take(isp, changed(report, sent_ms=2), observed_end(line.pk, "z"), now=now + timedelta(seconds=10))
    assert Vll.objects.get(pk=line.pk).policed is False
