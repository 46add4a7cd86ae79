"""Alarms are raised while their cause is there, once each, and cleared when it is gone."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from portal.accounts.models import User
from portal.alarms import rounds
from portal.alarms.kinds import PORTAL, AlarmCondition, Kind, Severity
from portal.alarms.models import Alarm, AlarmRound, OperatorState
from portal.alarms.operations import alarm_acknowledge
from portal.alarms.rounds import alarms_forget, alarms_watch
from portal.alarms.sentences import HEADLINES
from portal.core import clock
from portal.inventory.models import Router, RouterSilence
from portal.telemetry.models import AgentApiUptime
from tests.integration.isp import Isp
from tests.integration.raised_alarms import alarms_raised

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def silence(isp: Isp, now: datetime) -> RouterSilence:
    return RouterSilence.objects.create(router=isp.routers["rhino"], since=now - 5 * MINUTE)


def test_every_kind_has_a_severity_and_a_headline_and_is_looked_for() -> None:
    assert set(HEADLINES) == set(Kind)
    looked_for = [kind for kinds, _ in rounds.SOURCES for kind in kinds]
    assert sorted(looked_for) == sorted(Kind)


def test_an_alarm_is_raised_once_since_its_cause_began_and_cleared_when_that_is_gone(
    silence: RouterSilence, now: datetime
) -> None:
    for _ in range(2):
        assert alarms_watch(now=now)
    alarm = Alarm.objects.get()
    assert (alarm.kind, alarm.name, alarm.severity) == ("router_silent", "rhino", Severity.CRITICAL)
    assert (alarm.raised_at, alarm.cleared_at) == (silence.since, None)
    RouterSilence.objects.update(until=now)
    alarms_watch(now=now + MINUTE)
    alarms_watch(now=now + 2 * MINUTE)
    alarm.refresh_from_db()
    assert alarm.cleared_at == now + MINUTE


def test_the_next_occurrence_is_another_alarm_that_nobody_has_acknowledged(
    isp: Isp, silence: RouterSilence, nora: User, now: datetime
) -> None:
    alarms_watch(now=now)
    alarm_acknowledge(alarm=Alarm.objects.get(), user=nora, now=now)
    RouterSilence.objects.update(until=now)
    alarms_watch(now=now + MINUTE)
    RouterSilence.objects.create(router=isp.routers["rhino"], since=now + MINUTE)
    alarms_watch(now=now + 2 * MINUTE)
    first, second = Alarm.objects.order_by("raised_at")
    assert (first.object, first.cleared_at) == (second.object, now + MINUTE)
    assert list(OperatorState.objects.values_list("alarm", "acknowledged_by")) == [(first.pk, "nora")]


def test_the_database_knows_one_alarm_of_a_kind_for_an_object_at_a_time(
    silence: RouterSilence, now: datetime
) -> None:
    alarms_watch(now=now)
    again = Alarm.objects.get()
    again.pk = None
    with pytest.raises(IntegrityError, match="an_object_has_one_alarm"), transaction.atomic():
        Alarm.objects.bulk_create([again])


def test_a_continuing_alarm_is_updated_only_when_it_changed(silence: RouterSilence, now: datetime) -> None:
    alarms_watch(now=now)
    with CaptureQueriesContext(connection) as captured:
        alarms_watch(now=now)
    written = [each["sql"] for each in captured if each["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]
    assert [sql for sql in written if 'alarms_alarm"' in sql] == []
    RouterSilence.objects.update(counts_as_down=True)
    alarms_watch(now=now)
    assert Alarm.objects.get().facts == {"standing": "down"}


def test_a_clock_that_is_ahead_raises_nothing_in_the_future(isp: Isp, now: datetime) -> None:
    RouterSilence.objects.create(router=isp.routers["rhino"], since=now + timedelta(days=1))
    alarms_watch(now=now)
    assert Alarm.objects.get().raised_at == now


def test_a_source_that_breaks_clears_nothing_and_keeps_no_other_from_looking(
    silence: RouterSilence, isp: Isp, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms_watch(now=now)

    def broken(_now: datetime) -> Iterator[AlarmCondition]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column")
        yield from ()

    sources = [(kinds, broken if Kind.ROUTER_SILENT in kinds else source) for kinds, source in rounds.SOURCES]
    monkeypatch.setattr(rounds, "SOURCES", sources)
    Router.objects.filter(name="hippo").update(locked_since=now)
    assert alarms_raised() == ["rhino is silent", "hippo is locked, frozen or under maintenance"]
    assert AlarmRound.objects.get().unchecked_kinds == ["router_silent"]


def test_of_each_kind_only_so_many_are_raised(
    isp: Isp, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "MOST", 3)
    Router.objects.update(locked_since=now)
    alarms_watch(now=now)
    first = set(Alarm.objects.values_list("name", flat=True))
    alarms_watch(now=now)
    assert len(first) == 3
    assert first == set(Alarm.objects.filter(cleared_at=None).values_list("name", flat=True))


def test_an_alarm_beyond_the_limit_waits_and_takes_no_place_of_one_that_is_up(
    isp: Isp, nora: User, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source finds the new one first: the limit is of what is raised, not of what is found."""
    monkeypatch.setattr(rounds, "MOST", 2)
    found = ["router:2", "router:3"]

    def source(_now: datetime) -> Iterator[AlarmCondition]:
        yield from (AlarmCondition(kind=Kind.MAILS, object=each, name=each) for each in sorted(found))

    monkeypatch.setattr(rounds, "SOURCES", [((Kind.MAILS,), source)])
    assert alarms_watch(now=now)
    before = set(Alarm.objects.values_list("pk", flat=True))
    for alarm in Alarm.objects.all():
        alarm_acknowledge(alarm=alarm, user=nora, now=now)
    found.append("router:1")
    for minutes in (1, 2):
        assert alarms_watch(now=now + minutes * MINUTE)
    up = Alarm.objects.filter(cleared_at=None)
    assert set(up.values_list("pk", flat=True)) == before
    assert up.filter(operator_state__acknowledged_by="nora").count() == 2
    found.remove("router:2")
    for minutes in (3, 4):
        assert alarms_watch(now=now + minutes * MINUTE)
    assert set(up.values_list("object", flat=True)) == {"router:1", "router:3"}


def test_a_round_takes_no_more_statements_for_many_alarms_than_for_few(isp: Isp, now: datetime) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            alarms_watch(now=now)
        return len(captured)

    rhino, hippo = isp.routers["rhino"], isp.routers["hippo"]
    RouterSilence.objects.create(router=rhino, since=now)
    Router.objects.filter(name="rhino").update(locked_since=now)
    alarms_watch(now=now)
    few = statements()
    RouterSilence.objects.create(router=hippo, since=now)
    Router.objects.update(locked_since=now)
    alarms_watch(now=now)
    assert Alarm.objects.count() > 5
    assert statements() == few


def test_where_the_portal_itself_is_deaf_that_is_the_one_alarm(isp: Isp, now: datetime) -> None:
    AgentApiUptime.objects.create(began_at=now - timedelta(hours=1), last_recorded_at=now - MINUTE)
    assert alarms_raised() == ["The portal receives no reports from any router"]
    [alarm] = Alarm.objects.all()
    assert (alarm.object, alarm.raised_at) == (PORTAL, now - MINUTE)
    AgentApiUptime.objects.update(last_recorded_at=now)
    assert alarms_raised() == []


def test_what_has_cleared_long_ago_is_forgotten_and_what_is_up_never(
    isp: Isp, silence: RouterSilence, nora: User, now: datetime
) -> None:
    alarms_watch(now=now)
    old = Alarm.objects.get()
    alarm_acknowledge(alarm=old, user=nora, now=now)
    RouterSilence.objects.update(until=now)
    alarms_watch(now=now)
    RouterSilence.objects.create(router=isp.routers["hippo"], since=now - timedelta(days=900))
    alarms_watch(now=now)
    assert alarms_forget(before=now) == 0
    assert alarms_forget(before=now + MINUTE) == 1
    assert list(Alarm.objects.values_list("name", flat=True)) == ["hippo"]
    assert not OperatorState.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_rounds_at_once_the_second_leaves_it_to_the_first(isp: Isp, now: datetime) -> None:
    alarms_watch(now=now)
    connection_of_another = connection.copy()
    try:
        with connection_of_another.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT 1 FROM alarms_alarmround FOR UPDATE")
            RouterSilence.objects.create(router=isp.routers["rhino"], since=now)
            assert alarms_watch(now=now) is False
            assert not Alarm.objects.exists()
            cursor.execute("ROLLBACK")
    finally:
        connection_of_another.close()
    assert alarms_watch(now=now) is True
    assert Alarm.objects.count() == 1
