"""What the NOC says of alarms, on their pages: acknowledged, assigned, silenced, and undone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.alarms.errors import AlarmAcknowledged, AlarmCleared, AlarmNotAcknowledged
from portal.alarms.models import Alarm, OperatorState
from portal.alarms.operations import alarm_acknowledge, alarm_silence, alarm_unacknowledge
from portal.alarms.rounds import alarms_watch
from portal.audit.models import EVENTS
from portal.core import clock
from portal.inventory.models import RouterSilence
from tests.integration.isp import Isp
from tests.integration.raised_alarms import noc_page
from tests.integration.web_pages.browser import signed_in, text

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 25, 21, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def at_a_known_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


@pytest.fixture
def alarm(isp: Isp) -> Alarm:
    RouterSilence.objects.create(router=isp.routers["rhino"], since=NOW - timedelta(minutes=12))
    alarms_watch(now=NOW)
    return Alarm.objects.get()


@pytest.fixture
def browser(nora: User) -> Client:
    return signed_in(nora)


def do(browser: Client, alarm: Alarm, what: str, **sent: str) -> Any:
    return browser.post(f"/noc/alarms/{alarm.pk}/{what}/", sent, follow=True)


def clear() -> None:
    RouterSilence.objects.update(until=NOW)
    alarms_watch(now=NOW)


def test_an_acknowledged_alarm_names_user_and_reason_and_is_listed_last(
    alarm: Alarm, browser: Client
) -> None:
    assert "Unacknowledged (1) Critical rhino is silent" in noc_page(browser)
    answer = do(browser, alarm, "acknowledge", note="Urs drives there")
    assert answer.redirect_chain[-1][0] == f"/noc/alarms/{alarm.pk}/"
    assert "The alarm is acknowledged." in text(answer)
    shown = noc_page(browser)
    assert "Nothing new is wrong at the moment." in shown
    assert "Acknowledged (1) Critical rhino is silent" in shown
    assert "Acknowledged by nora Urs drives there" in shown


def test_the_lists_own_button_leads_back_to_the_list(alarm: Alarm, browser: Client) -> None:
    answer = do(browser, alarm, "acknowledge", back="list")
    assert answer.redirect_chain[-1][0] == "/noc/"
    assert OperatorState.objects.get().note == ""


def test_htmx_gets_the_list_at_once(alarm: Alarm, browser: Client) -> None:
    address = f"/noc/alarms/{alarm.pk}/acknowledge/"
    answer = browser.post(address, {"back": "list"}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.content.decode()
    assert "The alarm is acknowledged." in text(answer)
    assert "Acknowledged by nora" in text(answer)


def test_the_second_acknowledgement_names_the_first_user(alarm: Alarm, browser: Client, nina: User) -> None:
    do(browser, alarm, "acknowledge")
    shown = text(do(signed_in(nina), alarm, "acknowledge", note="me too"))
    assert "nora already acknowledged this alarm at 2026-11-25 21:30 UTC." in shown
    assert OperatorState.objects.get().acknowledged_by == "nora"
    with pytest.raises(AlarmAcknowledged):
        alarm_acknowledge(alarm=alarm, user=nina, now=NOW)


def test_anybody_of_the_noc_can_undo_an_acknowledgement(alarm: Alarm, browser: Client, nina: User) -> None:
    do(browser, alarm, "acknowledge", note="seen")
    assert "The acknowledgement is undone." in text(do(signed_in(nina), alarm, "unacknowledge"))
    said = OperatorState.objects.get()
    assert (said.acknowledged_by, said.acknowledged_at, said.note) == ("", None, "")
    assert "This alarm is not acknowledged" in text(do(browser, alarm, "unacknowledge"))
    with pytest.raises(AlarmNotAcknowledged):
        alarm_unacknowledge(alarm=alarm)


@pytest.mark.parametrize(
    ("what", "sent"),
    [
        ("acknowledge", {}),
        ("unacknowledge", {}),
        ("assign", {"to": "nora"}),
        ("silence", {"lasting": "hour"}),
        ("unsilence", {}),
    ],
)
def test_of_an_alarm_that_has_cleared_meanwhile_nothing_more_is_said(
    alarm: Alarm, browser: Client, what: str, sent: dict[str, str]
) -> None:
    clear()
    shown = text(do(browser, alarm, what, **sent))
    assert "This alarm cleared automatically at 2026-11-25 21:30 UTC." in shown
    assert not OperatorState.objects.exclude(acknowledged_by="", assigned_to=None, silenced_by="").exists()


def test_an_alarm_is_assigned_to_me_to_somebody_and_to_nobody(
    alarm: Alarm, browser: Client, nora: User, nina: User
) -> None:
    assert "Assign to me" in text(browser.get(f"/noc/alarms/{alarm.pk}/"))
    do(browser, alarm, "assign", to="nora")
    assert OperatorState.objects.get().assigned_to == nora
    assert "Assigned to nora" in noc_page(browser)
    assert "Assign to me" not in text(browser.get(f"/noc/alarms/{alarm.pk}/"))
    do(browser, alarm, "assign", to="nina")
    assert OperatorState.objects.get().assigned_to == nina
    do(browser, alarm, "assign", to="")
    assert OperatorState.objects.get().assigned_to is None


@pytest.mark.parametrize("name", ["alice", "nobody-of-that-name", "former"])
def test_only_people_of_the_noc_whose_accounts_are_open_are_assigned(
    alarm: Alarm, browser: Client, alice: User, name: str
) -> None:
    User.objects.create_user("former", noc_role="noc", is_active=False)
    answer = browser.post(f"/noc/alarms/{alarm.pk}/assign/", {"to": name})
    assert answer.status_code == 422
    assert f"No open NOC account is called {name}." in text(answer)
    assert not OperatorState.objects.exclude(assigned_to=None).exists()


@pytest.mark.parametrize(
    ("sent", "until"),
    [
        ({"lasting": "hour"}, NOW + timedelta(hours=1)),
        ({"lasting": "shift"}, NOW + timedelta(hours=8)),
        ({"lasting": "morning"}, datetime(2026, 11, 26, 8, tzinfo=UTC)),
        ({"lasting": "time", "until": "2026-11-30T14:00"}, datetime(2026, 11, 30, 14, tzinfo=UTC)),
        ({"lasting": "time", "until": "2026-11-30 14:00"}, datetime(2026, 11, 30, 14, tzinfo=UTC)),
    ],
)
def test_a_silenced_alarm_is_folded_away_and_returns_automatically(
    alarm: Alarm,
    browser: Client,
    monkeypatch: pytest.MonkeyPatch,
    sent: dict[str, str],
    until: datetime,
) -> None:
    shown = text(do(browser, alarm, "silence", **sent))
    assert f"The alarm is silent until {until:%Y-%m-%d %H:%M} UTC." in shown
    shown = noc_page(browser)
    assert "Nothing new is wrong" in shown
    assert "Silenced (1) Critical rhino is silent Its lines may be down." in shown
    assert f"Silenced by nora until {until:%Y-%m-%d %H:%M} UTC" in shown
    monkeypatch.setattr(clock, "now", lambda: until)
    shown = noc_page(browser)
    assert "Unacknowledged (1)" in shown
    assert "Silenced" not in shown


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"lasting": "time", "until": "2026-11-25T21:00"}, "2026-11-25 21:00 UTC is in the past."),
        ({"lasting": "time", "until": "2027-11-25T21:00"}, "can be silenced for 30 days at most"),
        ({"lasting": "time", "until": "9999-12-31T23:59"}, "can be silenced for 30 days at most"),
        ({"lasting": "time"}, "Choose when the silence ends."),
        ({"lasting": "time", "until": "next week"}, "Enter a date and a time in UTC"),
        ({"lasting": "for ever"}, "Select a valid choice."),
        ({}, "This field is required."),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused_in_words(
    alarm: Alarm, browser: Client, sent: dict[str, str], words: str
) -> None:
    answer = browser.post(f"/noc/alarms/{alarm.pk}/silence/", sent)
    assert answer.status_code == 422
    assert words in text(answer)
    assert not OperatorState.objects.exclude(silenced_until=None).exists()


def test_a_silence_is_of_the_object_and_outlives_an_alarm_that_comes_and_goes(
    alarm: Alarm, isp: Isp, browser: Client, nora: User
) -> None:
    alarm_silence(alarm=alarm, user=nora, until=NOW + timedelta(hours=1), now=NOW)
    clear()
    RouterSilence.objects.create(router=isp.routers["rhino"], since=NOW)
    RouterSilence.objects.create(router=isp.routers["hippo"], since=NOW)
    shown = noc_page(browser)
    assert "Unacknowledged (1) Critical hippo is silent" in shown
    assert "Silenced (1) Critical rhino is silent" in shown
    again = Alarm.objects.get(name="rhino", cleared_at=None)
    assert again.pk != alarm.pk
    do(browser, again, "unsilence", back="list")
    assert "Unacknowledged (2)" in noc_page(browser)


def test_the_last_word_about_a_silence_decides(alarm: Alarm, isp: Isp, nora: User) -> None:
    alarm_silence(alarm=alarm, user=nora, until=NOW + timedelta(days=7), now=NOW)
    clear()
    RouterSilence.objects.create(router=isp.routers["rhino"], since=NOW)
    alarms_watch(now=NOW)
    again = Alarm.objects.get(cleared_at=None)
    alarm_silence(alarm=again, user=nora, until=NOW + timedelta(hours=1), now=NOW)
    silences = OperatorState.objects.exclude(silenced_until=None)
    assert [each.silenced_until for each in silences] == [NOW + timedelta(hours=1)]


def test_nobody_but_the_noc_sees_or_says_anything(alarm: Alarm, alice: User, charlie: User) -> None:
    for user in (alice, charlie):
        for page in (f"/noc/alarms/{alarm.pk}/", "/noc/alarms/history/", "/noc/wall/"):
            assert signed_in(user).get(page).status_code == 403
        for what in ("acknowledge", "unacknowledge", "assign", "silence", "unsilence"):
            assert signed_in(user).post(f"/noc/alarms/{alarm.pk}/{what}/").status_code == 403
    assert not OperatorState.objects.exists()


def test_a_note_is_a_line_of_plain_text(alarm: Alarm, browser: Client) -> None:
    address = f"/noc/alarms/{alarm.pk}/acknowledge/"
    for note, words in (("a\u202eb", "The text contains invisible characters"), ("x" * 501, "at most 500")):
        answer = browser.post(address, {"note": note})
        assert answer.status_code == 422
        assert words in text(answer)
    assert not OperatorState.objects.exists()


def test_what_people_say_is_in_the_audit_trail_and_what_rounds_find_is_not(
    alarm: Alarm, browser: Client
) -> None:
    do(browser, alarm, "acknowledge", note="seen")
    do(browser, alarm, "silence", lasting="hour")
    trail = list(EVENTS[OperatorState].objects.order_by("pgh_id").values())
    assert {each["pgh_context"]["username"] for each in trail} == {"nora"}
    assert trail[-1]["note"] == "seen"
    assert trail[-1]["silenced_until"] == NOW + timedelta(hours=1)
    shown = text(browser.get("/noc/audit/?what=operatorstate"))
    assert "Routers silent: rhino Alarm changed nora" in shown
    assert "acknowledged_by – → nora" in shown


def test_an_operation_on_what_is_gone_says_since_when(alarm: Alarm, nora: User) -> None:
    clear()
    with pytest.raises(AlarmCleared) as refused:
        alarm_acknowledge(alarm=alarm, user=nora, now=NOW)
    assert refused.value.at == NOW
