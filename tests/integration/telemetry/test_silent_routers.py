"""Silent routers: the counts of the living end are evidence, and an unexplained silence is an outage."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from portal.accounts.models import User
from portal.alarms.kinds import Kind
from portal.alarms.sentences import note
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import ObservedRouter, RouterSilence
from portal.telemetry.availability import availability
from portal.telemetry.counter_ingest import counters_store
from portal.telemetry.line_status_in_silence import silence_judge
from portal.telemetry.models import AgentApiUptime, FrozenMonth, OperInterval
from portal.telemetry.observation_ingest import observation_take
from portal.telemetry.oper_status import stale_vlls_mark
from portal.telemetry.reported_counters import CounterReport, CounterSample, EndCount
from portal.telemetry.rollups import roll_up
from portal.telemetry.router_silences import silences_begin, silences_due, uptime_note
from portal.vll.models import Vll
from tests.integration.agents.test_reports_of_lines import empty_report
from tests.integration.isp import Isp
from tests.integration.observed_reports import observed_end
from tests.integration.orders import end, order
from tests.integration.raised_alarms import alarms_found
from tests.integration.router_answers import activate
from tests.integration.telemetry.test_counter_ingest import ms

pytestmark = pytest.mark.django_db
SIDES = {"rhino": "a", "hippo": "z"}
BOOTS = {"rhino": uuid4(), "hippo": uuid4()}
START = datetime.fromisoformat("2026-11-10T00:01:00+00:00")
MINUTE = timedelta(minutes=1)


def mark_stale() -> None:
    """Run the tasks that beat sends every ten seconds."""
    now = clock.now()
    stale_vlls_mark(now=now)
    silences_begin(now=now)
    for silence_id in silences_due(now=now):
        while silence_judge(silence_id=silence_id, now=now):
            pass


class Network:
    """Two routers, two lines between them, and a clock that a test moves."""

    def __init__(self, isp: Isp, line: Vll, idle: Vll) -> None:
        self.isp, self.line, self.idle, self.now = isp, line, idle, START

    def report(self, *routers: str, **facts: Any) -> None:
        for router in routers:
            ends = tuple(observed_end(line.pk, SIDES[router], **facts) for line in (self.line, self.idle))
            report = empty_report(sent_ms=ms(self.now), ends=ends)
            observation_take(router=self.isp.routers[router], report=report, now=self.now)

    def count(self, router: str, *spans: tuple[datetime, datetime], out: int) -> None:
        """Store samples of a minute each, with this number of frames out at this router's end."""
        samples: list[CounterSample] = []
        for begin, until in spans:
            while begin < until:
                counted = EndCount(str(self.line.pk), SIDES[router], 100, 1, 100 * out, out)
                samples.append(CounterSample(ms(begin) // 1000, ms(begin), ms(begin + MINUTE), (counted,)))
                begin += MINUTE
        report = CounterReport(str(BOOTS[router]), ms(self.now), False, 0, tuple(samples))
        stored = counters_store(router=self.isp.routers[router], report=report, now=self.now)
        assert stored.accepted == len(samples)

    def advance(
        self,
        span: timedelta,
        *living: str,
        agent_api: bool = True,
        step: timedelta = MINUTE / 2,
        **facts: Any,
    ) -> None:
        """Advance the clock. ``living`` routers report all the time; the agent API runs if ``agent_api``."""
        until = self.now + span
        while self.now < until:
            self.now = min(until, self.now + step)
            if agent_api:
                uptime_note(now=self.now)
                self.report(*living, **facts)
                mark_stale()

    def hours_later(self, hours: int, *living: str) -> None:
        """Advance by hours with few reports. The agent API ran all the time."""
        self.now += timedelta(hours=hours)
        AgentApiUptime.objects.update(last_recorded_at=self.now)
        ObservedRouter.objects.filter(router__name__in=living).update(reported_at=self.now)
        self.advance(MINUTE, *living)

    def times(self, since: datetime = START) -> dict[str, Any]:
        return availability(vll=self.line, since=since, until=self.now, now=self.now)

    @property
    def status(self) -> str:
        self.line.refresh_from_db()
        return self.line.oper_status


@pytest.fixture
def network(isp: Isp, alice: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    monkeypatch.setattr(clock, "now", lambda: START)
    line = order(isp, alice).vll
    ends = {f"{side}_end": end(isp, f"{router}:host-cust2") for router, side in SIDES.items()}
    idle = order(isp, alice, description="idle", **ends).vll
    for each in (line, idle):
        activate(each)
    found = Network(isp, line, idle)
    monkeypatch.setattr(clock, "now", lambda: found.now)
    uptime_note(now=START)
    found.report("rhino", "hippo")
    assert found.status == "op-up"
    yield found
    # The result is the same step by step and in one run.
    before = [
        seconds(availability(vll=each, since=START, until=found.now, now=found.now)) for each in (line, idle)
    ]
    RouterSilence.objects.update(judge_again=True)
    mark_stale()
    assert not RouterSilence.objects.filter(judge_again=True).exists()
    after = [
        seconds(availability(vll=each, since=START, until=found.now, now=found.now)) for each in (line, idle)
    ]
    assert after == before


def seconds(times: dict[str, Any]) -> tuple[float, float, float]:
    return times["up_s"], times["down_s"], times["unknown_s"]


def statuses(line: Vll) -> Sequence[str]:
    return (
        OperInterval.objects.filter(vll_id=line.pk)
        .order_by("began_at", "pk")
        .values_list("status", flat=True)
    )


def silent_routers() -> list[tuple[str, str, datetime | None]]:
    """Return the routers that have an alarm for the NOC."""
    return [(each.name, note(each.kind, each.facts), each.since) for each in alarms_found(Kind.ROUTER_SILENT)]


def test_observation_of_the_living_end_counts_from_its_time(network: Network) -> None:
    network.advance(MINUTE, "rhino", step=MINUTE / 6)
    assert network.status == "op-unknown"
    network.advance(MINUTE, "rhino", step=MINUTE / 6, reachable=False)
    assert network.status == "op-down"
    times = network.times()
    # The line is unknown from the time when Hippo's last report became outdated, even if noticed later.
    assert (times["up_s"], times["down_s"], times["unknown_s"]) == (35, 50, 35)
    network.advance(MINUTE / 2, "rhino", link_up=False)
    assert network.status == "op-down"
    network.advance(MINUTE / 2, "rhino")
    assert network.status == "op-unknown"


def test_six_hours_without_a_router_are_an_outage(network: Network) -> None:
    assert silent_routers() == []
    network.advance(10 * MINUTE, "rhino")
    assert network.status == "op-unknown"
    assert silent_routers() == [("hippo", "Its lines may be down.", START)]
    network.advance(MINUTE, "rhino")
    assert network.status == "op-down"
    assert silent_routers() == [
        ("hippo", "There is no sign of life from it: its lines count as down.", START)
    ]
    # The outage begins at the last report, and not at the decision.
    assert seconds(network.times()) == (0, 11 * 60, 0)
    network.hours_later(6, "rhino")
    network.report("rhino", "hippo")
    outage = (network.now - START).total_seconds()
    assert seconds(network.times()) == (0, outage, 0)
    assert network.times()["availability"] == 0
    network.advance(10 * MINUTE, "rhino", "hippo")
    assert network.status == "op-up"
    assert seconds(network.times()) == (600, outage, 0)
    assert list(statuses(network.line))[-2:] == ["op-down", "op-up"]


def test_short_silence_is_unknown_and_no_outage(network: Network) -> None:
    network.advance(8 * MINUTE, "rhino")
    network.report("hippo")
    network.advance(MINUTE, "rhino", "hippo")
    assert network.status == "op-up"
    up, down, unknown = seconds(network.times())
    assert (down, up + unknown) == (0, 9 * 60)
    assert 6 * 60 < unknown < 8 * 60


def test_time_without_a_running_portal_is_unknown(network: Network) -> None:
    network.advance(3 * MINUTE, "rhino")
    network.advance(timedelta(hours=6), agent_api=False, step=timedelta(hours=6))
    network.advance(3 * MINUTE, "rhino")
    assert network.status == "op-unknown"
    # The router is still silent, and now the portal has listened for long enough to count an outage.
    network.advance(6 * MINUTE, "rhino")
    assert network.status == "op-down"
    times = network.times()
    assert 11 * 60 < times["down_s"] < 13 * 60
    assert times["unknown_s"] == pytest.approx(6 * 3600, abs=60)


def test_portal_without_an_agent_api_counts_no_outage(network: Network) -> None:
    AgentApiUptime.objects.all().delete()
    network.now += timedelta(hours=6)
    network.report("rhino")
    mark_stale()
    assert network.status == "op-unknown"
    assert not RouterSilence.objects.exists()


def test_dead_agent_is_distinguished_from_a_dead_vpp(network: Network) -> None:
    for _ in range(6):
        begin = network.now
        network.advance(5 * MINUTE, "rhino")
        network.count("rhino", (begin, network.now), out=50)
        roll_up(now=network.now)
    network.advance(MINUTE, "rhino")
    assert network.status == "op-unknown"
    silence = RouterSilence.objects.get()
    assert silence.forwarded_at is not None
    assert (silence.counts_as_down, silence.down_spans) == (False, [])
    assert silent_routers() == [("hippo", "Its VPP is still forwarding: check the agent.", START)]
    # The frames that came out at Rhino had come from Hippo.
    times = network.times()
    assert times["down_s"] == 0
    assert times["up_s"] >= 25 * 60
    # Then VPP fails too.
    died = network.now
    for _ in range(4):
        begin = network.now
        network.advance(5 * MINUTE, "rhino")
        network.count("rhino", (begin, network.now), out=0)
        roll_up(now=network.now)
    assert network.status == "op-down"
    times = network.times(died)
    assert times["down_s"] >= 14 * 60
    assert times["up_s"] < 5 * 60


def test_idle_lines_of_a_forwarding_router_are_unknown(network: Network) -> None:
    begin = network.now
    network.advance(12 * MINUTE, "rhino")
    network.count("rhino", (begin, network.now), out=50)
    roll_up(now=network.now)
    network.advance(MINUTE, "rhino")
    network.idle.refresh_from_db()
    assert network.idle.oper_status == "op-unknown"
    times = availability(vll=network.idle, since=START, until=network.now, now=network.now)
    assert (times["down_s"], times["unknown_s"] > 12 * 60) == (0, True)


def test_late_counts_of_a_cut_off_agent_show_that_its_router_was_up(network: Network) -> None:
    silent_since = network.now
    network.advance(12 * MINUTE, "rhino")
    network.hours_later(2, "rhino")
    back = network.now
    assert network.status == "op-down"
    assert network.times()["down_s"] == (back - START).total_seconds()
    network.report("rhino", "hippo")
    network.count("hippo", (silent_since, back - MINUTE), out=20)
    roll_up(now=network.now + 10 * MINUTE)
    network.advance(MINUTE, "rhino", "hippo")
    assert network.status == "op-up"
    assert seconds(network.times()) == ((network.now - START).total_seconds(), 0, 0)


def test_late_counts_verify_only_the_time_with_forwarded_frames(network: Network) -> None:
    silent_since = network.now
    network.advance(12 * MINUTE, "rhino")
    network.hours_later(2, "rhino")
    back = network.now
    network.report("rhino", "hippo")
    # The router forwarded for an hour, was idle for half an hour, and then was off.
    hour, half = silent_since + 60 * MINUTE, silent_since + 90 * MINUTE
    network.count("hippo", (silent_since, hour), out=20)
    network.count("hippo", (hour, half), out=0)
    roll_up(now=network.now + 10 * MINUTE)
    network.advance(MINUTE / 2, "rhino", "hippo")
    up, down, unknown = seconds(network.times())
    assert up == pytest.approx(3600 + 30, abs=300)
    assert unknown == pytest.approx(1800, abs=300)
    assert down == pytest.approx((back - half).total_seconds(), abs=300)


def test_frozen_month_is_not_rewritten(network: Network) -> None:
    silent_since = network.now
    network.advance(12 * MINUTE, "rhino")
    network.report("rhino", "hippo")
    before = seconds(network.times())
    FrozenMonth.objects.create(month=START.date().replace(day=1), frozen_at=network.now)
    network.count("hippo", (silent_since, network.now - MINUTE), out=20)
    roll_up(now=network.now + 10 * MINUTE)
    mark_stale()
    assert not RouterSilence.objects.filter(judge_again=True).exists()
    assert seconds(network.times()) == before == (0, 12 * 60, 0)


def test_observed_outage_stays_an_outage(network: Network) -> None:
    network.advance(MINUTE, "rhino", "hippo", link_up=False)
    down_since = network.now - MINUTE / 2
    begin = network.now
    network.advance(15 * MINUTE, "rhino", link_up=False)
    network.count("rhino", (begin, network.now), out=50)
    roll_up(now=network.now)
    network.advance(MINUTE, "rhino", link_up=False)
    assert network.status == "op-down"
    assert network.times(down_since)["down_s"] == (network.now - down_since).total_seconds()


def test_both_silences_of_a_line_count(network: Network) -> None:
    network.advance(5 * MINUTE, "rhino")
    network.advance(12 * MINUTE)
    assert network.status == "op-down"
    network.report("hippo")
    network.advance(MINUTE, "hippo")
    # Rhino is still silent.
    assert network.status == "op-down"
    network.report("rhino")
    network.advance(MINUTE / 2, "rhino", "hippo")
    assert network.status == "op-up"
    assert seconds(network.times()) == (30, (network.now - START).total_seconds() - 30, 0)


def test_cut_off_router_is_no_evidence_for_the_other(network: Network) -> None:
    silent_since = network.now
    network.advance(12 * MINUTE)
    network.hours_later(1)
    network.report("hippo")
    network.count("hippo", (silent_since, network.now - MINUTE), out=0)
    roll_up(now=network.now + 10 * MINUTE)
    network.advance(MINUTE, "hippo")
    # Rhino is still dead, and was all the time.
    assert network.status == "op-down"
    assert not RouterSilence.objects.get(router__name="hippo").down_spans
    assert seconds(network.times()) == (0, (network.now - START).total_seconds(), 0)


def test_silence_has_one_begin_and_one_end_event(network: Network) -> None:
    network.advance(3 * MINUTE, "rhino")
    network.advance(3 * MINUTE, "rhino", "hippo")
    events = Event.objects.filter(kind__in=["router.silent", "router.reporting"]).order_by("id")
    hippo = network.isp.routers["hippo"].pk
    assert [(event.kind, event.router_id) for event in events] == [
        ("router.silent", hippo),
        ("router.reporting", hippo),
    ]
    assert events[0].at == START


def test_unobserved_silence_is_judged_at_its_end(network: Network) -> None:
    network.now += timedelta(hours=1)
    AgentApiUptime.objects.update(last_recorded_at=network.now)
    network.report("rhino", "hippo")
    mark_stale()
    assert network.status == "op-up"
    assert seconds(network.times()) == (0, 3600, 0)
