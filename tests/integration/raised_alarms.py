"""Alarms as a round finds and stores them."""

from datetime import datetime
from typing import Any

from django.test import Client

from portal.alarms.kinds import AlarmCondition, Kind
from portal.alarms.models import Alarm
from portal.alarms.rounds import alarms_watch, find_conditions
from portal.alarms.sentences import headline, note
from portal.core import clock
from tests.integration.web_pages.browser import text


def alarms_found(kind: Kind, now: Any = None) -> list[AlarmCondition]:
    """Return the findings of that kind."""
    result = find_conditions(now or clock.now())
    assert not result.unchecked
    return [each for each in result.found if each.kind == kind]


def alarm_texts(kind: Kind, now: Any = None) -> list[str]:
    """Return the findings as text: ``rhino: its note``."""
    return [f"{each.name}: {note(each.kind, each.facts)}".strip() for each in alarms_found(kind, now)]


def alarm_headline(each: AlarmCondition | Alarm) -> str:
    return headline(each.kind).format(name=each.name)


def alarms_raised(kind: Kind | None = None, now: datetime | None = None) -> list[str]:
    """Run a round and return the headlines of the raised alarms, the most severe first."""
    assert alarms_watch(now=now or clock.now())
    rows = Alarm.objects.filter(cleared_at__isnull=True, **({"kind": kind} if kind else {}))
    return [alarm_headline(alarm) for alarm in rows.order_by("severity", "raised_at", "name")]


def noc_page(browser: Client) -> str:
    """Run a round and return the text of the NOC's first page."""
    assert alarms_watch(now=clock.now())
    return text(browser.get("/noc/"))
