"""Alarms that a newer release stored: its workers run before the last machine is upgraded."""

from datetime import datetime, timedelta

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.alarms.models import Alarm, AlarmRound
from portal.alarms.rounds import alarms_watch
from portal.core import clock
from tests.integration.isp import Isp
from tests.integration.newer_release import allow_unknown
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
KIND = "flux_capacitor"
HEADLINE = f"rhino: an alarm of the unknown kind “{KIND}”"
NOTE = "This release does not know its kind"


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def unknown(isp: Isp, now: datetime) -> Alarm:
    allow_unknown("alarms_alarm", "an_alarm_is_of_a_known_kind")
    return Alarm.objects.create(
        kind=KIND,
        object=f"router:{isp.routers['rhino'].pk}",
        name="rhino",
        facts={"charge": 1},
        severity=1,
        lines=1,
        customers=1,
        first_lines=[
            {"line": "0d9c5f0e-6f55-4f6b-8f2f-3f9a5f2f7b02", "name": "ZRH-AMS", "customer": "Alpine Dairy"}
        ],
        raised_at=now - timedelta(minutes=5),
    )


@pytest.fixture
def browser(nora: User) -> Client:
    return signed_in(nora)


@pytest.mark.parametrize("page", ["/noc/", "/noc/wall/", "/noc/alarms/history/"])
def test_lists_name_the_unknown_kind(unknown: Alarm, browser: Client, page: str) -> None:
    answer = browser.get(page)
    assert answer.status_code == 200
    assert HEADLINE in text(answer)


def test_its_page_says_why_nothing_is_known_of_it(unknown: Alarm, browser: Client) -> None:
    shown = text(browser.get(f"/noc/alarms/{unknown.pk}/"))
    assert HEADLINE in shown
    assert NOTE in shown
    assert "Alpine Dairy" in shown, "what is stored with the alarm is shown"


def test_a_round_of_this_release_does_not_clear_it(unknown: Alarm, now: datetime) -> None:
    assert alarms_watch(now=now)
    unknown.refresh_from_db()
    assert unknown.cleared_at is None


def test_a_kind_that_a_newer_round_could_not_check_is_named(unknown: Alarm, browser: Client) -> None:
    AlarmRound.objects.update_or_create(
        pk=1, defaults={"at": clock.now(), "unchecked_kinds": [KIND, "netbox"]}
    )
    shown = text(browser.get("/noc/"))
    assert f"These could not be checked, and the worker's log says why: {KIND}, NetBox does not" in shown


def test_a_severity_that_a_newer_release_stored_is_shown_as_its_number(
    unknown: Alarm, browser: Client
) -> None:
    allow_unknown("alarms_alarm", "an_alarm_has_a_known_severity")
    Alarm.objects.update(severity=7)
    for page in ("/noc/", "/noc/wall/", "/noc/alarms/history/", f"/noc/alarms/{unknown.pk}/"):
        assert browser.get(page).status_code == 200, page


@pytest.mark.parametrize("about", ["router:not-a-number", "line:7", "path:1", "quarantine:x:y", "order:9"])
def test_a_form_of_object_that_no_page_has_leads_nowhere(unknown: Alarm, browser: Client, about: str) -> None:
    Alarm.objects.update(object=about)
    for page in ("/noc/", "/noc/wall/", f"/noc/alarms/{unknown.pk}/"):
        assert browser.get(page).status_code == 200, page


@pytest.mark.parametrize("kind", Kind)
def test_a_known_kind_with_facts_of_another_release_is_shown(
    browser: Client, now: datetime, kind: Kind
) -> None:
    alarm = Alarm.objects.create(
        kind=kind, object="other:7", name="rhino", facts={"standing": "sideways"}, severity=1, raised_at=now
    )
    for page in ("/noc/", "/noc/wall/", f"/noc/alarms/{alarm.pk}/"):
        assert browser.get(page).status_code == 200, page
