"""The pages of alarms: one with its lines and earlier times, the history, and the wall."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import Customer, User
from portal.alarms.models import Alarm, AlarmRound
from portal.alarms.operations import alarm_acknowledge
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from portal.inventory.models import Router, RouterSilence
from portal.vll.models import Vll
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.raised_alarms import noc_page
from tests.integration.web_pages.browser import ask_again, part_of, signed_in, text

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def browser(nora: User) -> Client:
    return signed_in(nora)


def silence(isp: Isp, name: str, *, ago: timedelta = 5 * MINUTE, **more: Any) -> Alarm:
    RouterSilence.objects.create(router=isp.routers[name], since=clock.now() - ago, **more)
    alarms_watch(now=clock.now())
    return Alarm.objects.get(kind="router_silent", name=name, cleared_at=None)


def over(isp: Isp, name: str) -> None:
    RouterSilence.objects.filter(router=isp.routers[name]).update(until=clock.now())
    alarms_watch(now=clock.now())


def test_an_alarm_opens_to_its_lines_and_to_earlier_times(
    isp: Isp, vll: Vll, browser: Client, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)  # the time that an alarm was up is shown to the second
    first = silence(isp, "rhino", ago=timedelta(hours=2))
    alarm_acknowledge(alarm=first, user=nora, note="fan", now=clock.now())
    over(isp, "rhino")
    second = silence(isp, "rhino")
    shown = text(browser.get(f"/noc/alarms/{second.pk}/"))
    assert "Critical Active for 5 min Its lines may be down." in shown
    assert "Affected lines now" in shown
    assert "ZRH-AMS Alpine Dairy" in shown
    assert "Other occurrences" in shown
    assert "2 h 1 nora fan" in shown
    gone = text(browser.get(f"/noc/alarms/{first.pk}/"))
    assert "Cleared after 2 h" in gone
    assert "Affected lines now" not in gone, "they are not those that were there then"
    assert "Acknowledge" not in gone.replace("Acknowledged by", "")


def test_the_list_says_how_many_lines_of_whom(isp: Isp, alice: User, browser: Client, vll: Vll) -> None:
    silence(isp, "rhino")
    assert "rhino is silent Its lines may be down. Line ZRH-AMS of Alpine Dairy" in noc_page(browser)
    Alarm.objects.update(lines=12)
    assert "12 lines of Alpine Dairy" in text(browser.get("/noc/"))
    Alarm.objects.update(customers=5)
    assert "12 lines of 5 customers" in text(browser.get("/noc/"))


def test_the_list_is_bounded_and_its_counts_are_whole(isp: Isp, browser: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr("portal.web.noc.alarms.alarm_views.SHOWN", 2)
    Router.objects.update(locked_since=clock.now())
    shown = noc_page(browser)
    assert shown.count("is locked, frozen or under maintenance Nothing is sent to it.") == 2
    assert f"The worst 2 of {Router.objects.count()} are shown." in shown


def test_the_list_is_sent_again_only_when_it_says_something_else(isp: Isp, browser: Client) -> None:
    noc_page(browser)
    part = part_of(browser.get("/noc/"))
    assert ask_again(browser, part).status_code == 204
    silence(isp, "rhino")
    answer = ask_again(browser, part)
    assert answer.status_code == 200
    assert "rhino is silent" in text(answer)


def test_the_page_says_when_nobody_looks(isp: Isp, browser: Client) -> None:
    assert "Alarms have not been checked yet." in text(browser.get("/noc/"))
    assert "Nothing is wrong at the moment." in noc_page(browser)
    AlarmRound.objects.update(at=clock.now() - MINUTE)
    shown = text(browser.get("/noc/"))
    assert "Alarms were last checked at" in shown
    assert "Nothing is wrong" not in shown
    AlarmRound.objects.update(at=clock.now(), unchecked_kinds=["router_silent"])
    shown = text(browser.get("/noc/"))
    assert "These could not be checked, and the worker's log says why: Routers silent" in shown
    assert "Routers silent: none" not in shown


def test_the_history_is_narrowed_by_kind_router_state_and_time(isp: Isp, browser: Client) -> None:
    silence(isp, "rhino", ago=timedelta(hours=3))
    over(isp, "rhino")
    Alarm.objects.update(cleared_at=clock.now() - timedelta(hours=2))
    silence(isp, "hippo")
    Router.objects.filter(name="hippo").update(locked_since=clock.now())
    alarms_watch(now=clock.now())

    def found(**parameters: str) -> list[str]:
        page = browser.get("/noc/alarms/history/", parameters)
        assert page.status_code == 200
        return [f"{alarm.kind} {alarm.name}" for alarm in page.context["page"].rows]

    hippo, rhino = "router_silent hippo", "router_silent rhino"
    assert found() == ["withheld hippo", hippo, rhino]
    assert found(kind="router_silent") == [hippo, rhino]
    assert found(router="hippo") == ["withheld hippo", hippo]
    assert found(router="no-such-router") == []
    assert found(state="up") == ["withheld hippo", hippo]
    assert found(state="cleared") == [rhino]
    an_hour_ago = f"{clock.now() - timedelta(hours=1):%Y-%m-%dT%H:%M}"
    assert found(since=an_hour_ago) == ["withheld hippo", hippo]
    assert found(until=an_hour_ago) == [rhino]
    assert "1 h" in text(browser.get("/noc/alarms/history/?state=cleared"))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"since": "yesterday"}, "Enter a date and a time in UTC"),
        ({"since": "2026-02-01T00:00", "until": "2026-01-01T00:00"}, "not after the other time"),
        ({"since": "2099-01-01T00:00"}, "This is in the future."),
        ({"kind": "no-such"}, "Select a valid choice."),
    ],
)
def test_a_history_that_cannot_be_is_422_and_says_why(
    isp: Isp, browser: Client, parameters: dict[str, str], words: str
) -> None:
    answer = browser.get("/noc/alarms/history/", parameters)
    assert answer.status_code == 422
    assert words in text(answer)


def test_the_history_is_paged(isp: Isp, browser: Client) -> None:
    now = clock.now()
    Alarm.objects.bulk_create(
        Alarm(
            kind="withheld",
            object=f"router:{number}",
            name=f"r{number}",
            facts={"held": True},
            severity=4,
            raised_at=now - number * MINUTE,
            cleared_at=now,
        )
        for number in range(60)
    )
    first = browser.get("/noc/alarms/history/?kind=withheld").context["page"]
    assert len(first.rows) == 50
    rest = browser.get("/noc/alarms/history/", {"kind": "withheld", "after": first.after}).context["page"]
    assert [alarm.name for alarm in rest.rows] == [f"r{number}" for number in range(50, 60)]
    assert rest.after == ""


def test_the_wall_says_how_lines_are_what_is_worst_and_whom_it_concerns(
    isp: Isp, alice: User, dairy: Customer, vll: Vll, browser: Client, nora: User
) -> None:
    Vll.objects.filter(pk=vll.pk).update(oper_status="op-up")
    Customer.objects.filter(pk=dairy.pk).update(approve_up_to_bps=0)
    alice.refresh_from_db()
    ends = {"a_end": end(isp, "rhino:host-cust2"), "z_end": end(isp, "hippo:host-cust2")}
    order(isp, alice, description="Pending", **ends)
    assert "Unknown" not in text(browser.get("/noc/wall/")), "only where there are any"
    silence(isp, "rhino")
    seen = silence(isp, "hippo", ago=timedelta(hours=2))
    alarm_acknowledge(alarm=seen, user=nora, now=clock.now())
    shown = text(browser.get("/noc/wall/"))
    assert "Up 1 Degraded 0 Down 0 In service 1" in shown
    assert "Critical 1 Major 0 Minor 0 Warning 1 Orders pending approval 1" in shown
    assert "rhino is silent Alpine Dairy 5 min" in shown
    assert "hippo is silent" not in shown, "somebody has acknowledged it"
    assert "Acknowledged: 1" in shown


def test_the_wall_turns_to_a_warning_when_nobody_looks(isp: Isp, browser: Client) -> None:
    assert "Alarms have not been checked yet" in text(browser.get("/noc/wall/"))
    alarms_watch(now=clock.now())
    calm = text(browser.get("/noc/wall/"))
    assert "Nothing new is wrong" in calm
    assert "As of" in calm
    AlarmRound.objects.update(at=clock.now() - MINUTE)
    assert "Alarms were last checked at" in text(browser.get("/noc/wall/"))


def test_the_wall_page_is_dark_without_navigation_and_refreshes_itself(isp: Isp, browser: Client) -> None:
    whole = browser.get("/noc/wall/").content.decode()
    assert '<html lang="en" data-bs-theme="dark">' in whole
    assert "<nav" not in whole
    assert "theme.js" not in whole
    assert 'http-equiv="refresh"' in whole, "without scripts it loads again"
    part = browser.get("/noc/wall/", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<main id="wall"')
    assert "<html" not in part


@pytest.mark.parametrize("address", ["/noc/", "/noc/wall/", "/noc/alarms/history/"])
def test_a_page_takes_no_more_statements_for_many_alarms(isp: Isp, browser: Client, address: str) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(address).status_code == 200
        return len(captured)

    silence(isp, "rhino")
    statements()
    few = statements()
    Router.objects.update(locked_since=clock.now())
    silence(isp, "hippo")
    assert Alarm.objects.count() > 5
    assert statements() == few
