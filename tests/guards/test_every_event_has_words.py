"""Timelines and alarms describe events and tasks in sentences, and never show the names of programs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from devstack.folders import ROOT
from portal import celery_tasks
from portal.alarms.kinds import Kind as AlarmKind
from portal.alarms.sentences import _OTHER_WORK, note
from portal.events.models import Event
from portal.telemetry.router_events import Kind
from portal.vll.states import Lifecycle, OperStatus, OrderState
from portal.web.lines.events import _OTHER, sentence

_KIND = re.compile(r"(router|vll|order|line_test|trouble|hold)\.[a-zA-Z_-]+")
# A router's timeline shows changes of these rows.
_ROWS = ("router", "link", "port")


def literals() -> Iterator[str]:
    """Yield each literal kind of an event: the first argument or ``kind`` of a call of ``announce``."""
    for path in (*(ROOT / "portal").rglob("*.py"), *(ROOT / "provisioning").rglob("*.py")):
        if "migrations" not in path.parts:
            yield from _announced(path)


def _announced(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if "announce" not in name and name not in ("_tell", "_end", "_began"):
            continue
        for value in [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "kind")]:
            for each in () if isinstance(value, ast.JoinedStr) else ast.walk(value):
                if isinstance(each, ast.Constant) and _KIND.fullmatch(str(each.value)):
                    yield str(each.value)


def composed() -> Iterator[str]:
    """Yield the kinds that are composed from a state or a report."""
    yield from (f"{row}.{what}" for row in _ROWS for what in ("created", "changed", "removed"))
    yield from (f"router.{kind}" for kind in get_args(Kind))
    yield from (f"order.{state}" for state in OrderState.values)
    yield from (f"vll.{lifecycle}" for lifecycle in Lifecycle.values if lifecycle != Lifecycle.PENDING_ACTIVE)
    yield from (f"vll.{status}" for status in OperStatus.values)
    yield from ("router.silent", "router.reporting", "router.retired")


KINDS = sorted({*literals(), *composed()})


def test_the_kinds_are_found() -> None:
    assert {"router.created", "router.retired", "vll.drift", "vll.not_carried"} <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_kind_has_a_sentence(kind: str) -> None:
    text = sentence(Event(kind=kind, data={}))
    assert kind not in text
    assert text != _OTHER


def tasks() -> Iterator[str]:
    """Yield the name of every task that may wait for the relay."""
    for name, value in vars(celery_tasks).items():
        if name.isupper() and isinstance(value, str):
            yield value


TASKS = sorted(tasks())


def test_the_tasks_are_found() -> None:
    assert {"provisioning.sweep", "notifications.tell", "netbox.sync"} <= set(TASKS)


@pytest.mark.parametrize("first", [*TASKS, "provisioning.plan_order('0198',)"])
def test_an_alarm_describes_a_waiting_task_in_words(first: str) -> None:
    text = note(AlarmKind.RELAY, {"messages": 1, "first": first})
    assert first.partition("(")[0] not in text
    assert _OTHER_WORK not in text


@pytest.mark.parametrize("kind", [*KINDS, "monthly_report"])
def test_an_alarm_names_no_kind_of_a_waiting_mail(kind: str) -> None:
    text = note(AlarmKind.MAILS, {"mails": 1, "first": f"{kind} → alice", "error": "refused"})
    assert text == "Mails waiting: 1. The first is to alice. refused"
