"""Paths between routers are watched where both routers can; a line is down while its path is down."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.core import clock
from portal.core.clock import to_ms
from portal.core.network.path_bfd import PathWatch
from portal.events.models import Event
from portal.inventory.models import ObservedPath, ObservedRouter, Router
from portal.inventory.reported_observation import EndPath, PathReport, WatchReport
from portal.metrics import families
from portal.notifications.line_fault_causes import cause_sentence, causes_of_down
from portal.telemetry.observation_ingest import observation_take
from portal.telemetry.oper_status import ends_observed
from portal.vll.convergence.requests import intent_is_wanted
from portal.vll.models import RouterConvergence, Vll
from portal.vll.path_status import path_status
from provisioning.intent_generations import next_intent
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_end, observed_report
from tests.integration.orders import order
from tests.integration.raised_alarms import alarm_headline, alarms_found
from tests.integration.router_answers import activate
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
SIDES = {"a": "rhino", "z": "hippo"}
SINCE = datetime(2026, 11, 24, 14, 3, 7, tzinfo=UTC)
SET = WatchReport(interval_ms=300, multiplier=3)


@pytest.fixture
def line(isp: Isp, alice: User) -> Vll:
    vll = order(isp, alice, transport="vxlan4").vll
    activate(vll)
    ObservedRouter.objects.update(path_watch=True)
    return vll


def report_path(isp: Isp, vll: Vll, *, a: str | None, z: str | None, **facts: Any) -> str:
    """Return the line's oper status after both routers have reported the state of its path."""
    for side, state in (("a", a), ("z", z)):
        path = state and EndPath(state=state, since_ms=to_ms(SINCE))
        ends = [observed_end(vll.pk, side, path=path, **facts)]
        ends_observed(router=isp.routers[SIDES[side]], ends=ends, now=clock.now())
    vll.refresh_from_db()
    return vll.oper_status


def test_line_is_down_while_its_path_is_down(isp: Isp, line: Vll) -> None:
    assert report_path(isp, line, a="up", z="up") == "op-up"
    assert report_path(isp, line, a="down", z="up") == "op-down"
    assert report_path(isp, line, a="up", z="up") == "op-up"
    assert report_path(isp, line, a="up", z="down") == "op-down"
    kinds = Event.objects.filter(vll_id=line.pk, kind__startswith="vll.op-").order_by("id")
    assert [event.kind for event in kinds] == ["vll.op-up", "vll.op-down", "vll.op-up", "vll.op-down"]


@pytest.mark.parametrize("far", [None, "shut", "refused"])
def test_session_without_a_peer_takes_no_line_down(isp: Isp, line: Vll, far: str | None) -> None:
    assert report_path(isp, line, a="down", z=far) == "op-up"
    assert report_path(isp, line, a="down", z=far, reachable=False) == "op-down"


def test_path_that_was_never_up_is_not_watched_and_not_down(isp: Isp, line: Vll) -> None:
    assert report_path(isp, line, a="unheard", z="unheard") == "op-up"
    status = path_status(line)
    assert status is not None
    assert (status.state, status.why) == ("not_watched", "unheard")
    assert "4784" in status.hint


def test_ending_sessions_take_no_line_down_after_watching_is_switched_off(
    isp: Isp, line: Vll, settings: Any
) -> None:
    report_path(isp, line, a="up", z="up")
    settings.LONGLINE_PATH_WATCH = None
    assert report_path(isp, line, a="down", z="up") == "op-up"
    status = path_status(line)
    assert status is not None
    assert status.why == "off"


def test_page_and_api_say_since_when_the_path_is_down(isp: Isp, line: Vll, alice: User) -> None:
    report_path(isp, line, a="down", z="up")
    page = text(signed_in(alice).get(f"/vlls/{line.pk}/"))
    assert "The path between rhino and hippo has been down since 2026-11-24 14:03:07 UTC" in page
    status = path_status(Vll.objects.get(pk=line.pk))
    assert status is not None
    assert status.message == "The path between rhino and hippo has been down since 14:03:07 UTC."
    assert cause_sentence(causes_of_down([line.pk], now=clock.now())[line.pk]) == (
        "The path between hippo – rhino is down."
    )


def test_settled_page_polls_for_its_path_and_changes_only_with_it(isp: Isp, line: Vll, alice: User) -> None:
    report_path(isp, line, a="up", z="up")
    browser = signed_in(alice)
    body = browser.get(f"/vlls/{line.pk}/").content.decode()
    found = re.search(r'hx-get="(/vlls/[^"]+/status/[^"]+unless=[^"]+)"', body)
    assert found is not None
    assert 'hx-trigger="live, every 1s"' in body
    address = unescape(found[1])
    assert browser.get(address).status_code == 204
    report_path(isp, line, a="down", z="up")
    response = browser.get(address)
    assert response.status_code == 200
    assert "has been down" in response.content.decode()


def test_page_names_the_router_that_cannot_watch_and_gives_the_noc_the_reason(
    isp: Isp, line: Vll, alice: User, nina: User
) -> None:
    ObservedRouter.objects.filter(router=isp.routers["hippo"]).update(path_watch=False)
    report_path(isp, line, a="unheard", z=None)
    shown_to_alice, shown_to_nina = (text(signed_in(user).get(f"/vlls/{line.pk}/")) for user in (alice, nina))
    assert "not watched: hippo cannot watch paths" in shown_to_alice
    assert "Multihop BFD" not in shown_to_alice
    assert "Multihop BFD" in shown_to_nina


def test_intent_requests_path_watching_where_the_router_supports_it(
    isp: Isp, line: Vll, settings: Any
) -> None:
    rhino = isp.routers["rhino"]
    assert next_intent(rhino).watch == PathWatch(300, 3)
    assert b'"watch":{"interval_ms":300,"multiplier":3}' in next_intent(rhino).document()
    settings.LONGLINE_PATH_WATCH = None
    assert b"watch" not in next_intent(rhino).document()
    settings.LONGLINE_PATH_WATCH = PathWatch(300, 3)
    ObservedRouter.objects.update(path_watch=False)
    assert b"watch" not in next_intent(rhino).document()


def test_router_with_outdated_watch_settings_gets_one_intent(isp: Isp, line: Vll) -> None:
    rhino = isp.routers["rhino"]
    RouterConvergence.objects.create(router=rhino)
    waits = RouterConvergence.objects.filter(router=rhino)

    def sends_intent(sent_ms: int, watching: WatchReport | None) -> bool:
        waits.update(answered=F("wanted"), intent_requested=False)
        report = observed_report(sent_ms=sent_ms, path_watch=True, watching=watching)
        assert observation_take(router=rhino, report=report, now=clock.now())
        rhino.refresh_from_db()
        return waits.filter(intent_is_wanted()).exists()

    assert sends_intent(1, None)
    assert not sends_intent(2, SET)
    assert sends_intent(3, WatchReport(interval_ms=1000, multiplier=3))
    # A repeated report sends an intent only while its settings differ.
    assert sends_intent(4, WatchReport(interval_ms=1000, multiplier=3))
    assert not sends_intent(5, SET)
    assert not sends_intent(6, SET)


def test_paths_are_stored_by_router_and_pair_and_unchanged_paths_cost_no_statement(
    isp: Isp, line: Vll, nina: User
) -> None:
    rhino, now = isp.routers["rhino"], clock.now()

    def take(sent_ms: int, state: str) -> int:
        path = PathReport(
            local="10.255.0.1", remote="10.255.0.2", state=state, since_ms=to_ms(SINCE), foreign=True
        )
        report = observed_report(sent_ms=sent_ms, path_watch=True, watching=SET, paths=(path,))
        router = Router.objects.select_related("observed").get(pk=rhino.pk)
        with CaptureQueriesContext(connection) as queries:
            assert observation_take(router=router, report=report, now=now + timedelta(seconds=sent_ms))
        return len(queries)

    take(1, "up")
    take(2, "up")
    assert take(3, "up") == 1
    take(4, "down")
    kept = ObservedPath.objects.get()
    assert (kept.router, kept.remote, kept.state, kept.since) == (rhino, "10.255.0.2", "down", SINCE)
    page = text(signed_in(nina).get(f"/noc/routers/{rhino.pk}/"))
    assert "10.255.0.2" in page
    assert "foreign: only read" in page


def test_noc_sees_paths_that_are_down_or_never_heard(isp: Isp, nina: User) -> None:
    def headlines(a: str, z: str) -> list[str]:
        ObservedPath.objects.all().delete()
        for name, near, far, state in (
            ("rhino", "10.0.0.1", "10.0.0.2", a),
            ("hippo", "10.0.0.2", "10.0.0.1", z),
        ):
            if state:
                router = isp.routers[name]
                ObservedPath.objects.create(router=router, local=near, remote=far, state=state, since=SINCE)
        return [
            alarm_headline(each)
            for kind in (Kind.PATH_DOWN, Kind.PATH_UNHEARD)
            for each in alarms_found(kind)
        ]

    assert headlines("up", "up") == []
    assert headlines("down", "starting") == ["The path rhino – hippo is down"]
    assert headlines("down", "down") == ["The path rhino – hippo is down"], "one path, one alarm"
    assert headlines("down", "") == []
    assert headlines("unheard", "unheard") == ["The path rhino – hippo cannot be watched"]


def test_paths_are_counted_by_state(isp: Isp) -> None:
    ObservedPath.objects.create(
        router=isp.routers["rhino"], local="10.0.0.1", remote="10.0.0.2", state="down", since=SINCE
    )
    family, *_ = families.path_families(clock.now())
    assert {sample.labels["state"]: sample.value for sample in family.samples if sample.value} == {"down": 1}
