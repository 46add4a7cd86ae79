"""The cost of an end that cannot be built yet: few intents, fewer rows, and no delay once it can be built."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest

from portal.accounts.models import User
from portal.celery_tasks import CONVERGE_ROUTER
from portal.core import clock
from portal.core.network.encapsulations import Encapsulation
from portal.inventory.models import ObservedRouter
from portal.inventory.reported_observation import EndObservation, InterfaceReport
from portal.telemetry.observation_ingest import observation_take
from portal.vll.convergence.claims import routers_due
from portal.vll.convergence.requests import FIRST_PAUSE, LONGEST_PAUSE
from portal.vll.models import Attempt, Order, RouterConvergence, Vll, VllTombstone
from portal.vll.operations.order_endings import order_force_retry
from portal.vll.router_operations.actions import router_lock_set, router_retry
from provisioning.agent_client import Refused, Unreachable
from provisioning.agent_reply_decoder import Answered, StoredIntent, reply_decode
from provisioning.convergence import converge_router
from provisioning.intent_document import RouterIntent
from tests.integration.isp import Isp
from tests.integration.observed_reports import changed, interface, observed_end, observed_report
from tests.integration.orders import end, order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.stand_in_agent import StandInAgent, end_status

pytestmark = pytest.mark.django_db
ABSENT = end_status("pending", "unknown_interface")
UNREACHABLE = Unreachable("ConnectError: [Errno 111] Connection refused")
# The longest pause, after five shorter ones.
SHORTER_PAUSES = 6


@dataclass
class Agents:
    """Stand-in agents without a network, and a clock. ``sent``: receiver and time of each intent."""

    isp: Isp
    by_router: dict[str, StandInAgent]
    now: datetime
    sent: list[tuple[str, datetime]] = field(default_factory=list)
    unreachable: bool = False

    def sweep(self, duration: timedelta, *, every_s: int = 5) -> None:
        """Run the sweeper and take every message immediately."""
        until = self.now + duration
        while self.now < until:
            for router in {*routers_due(now=self.now), *self.messages()}:
                converge_router(router, now=lambda: self.now)
            self.now += timedelta(seconds=every_s)

    def messages(self) -> set[int]:
        """Take the waiting messages and return their routers."""
        waiting = {args[0] for _, args in requested(CONVERGE_ROUTER)}
        forget_requests()
        return waiting

    def rhino_has_a_message(self) -> bool:
        """Return whether a message for rhino exists now, without a run of the sweeper."""
        return self.isp.routers["rhino"].pk in self.messages()

    def rhino_answers(self, **others: dict[str, Any]) -> None:
        rhino = self.by_router["rhino"]
        rhino.answer = lambda intent: rhino.accept(intent, **others)

    def sent_to(self, router: str) -> int:
        return [each for each, _ in self.sent].count(router)


@dataclass
class Client:
    """Replaces provisioning.agent_client.AgentClient."""

    agents: Agents
    router: str

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def stored_intent(self) -> StoredIntent | Unreachable:
        stored = self.agents.by_router[self.router].stored
        if self.agents.unreachable:
            return UNREACHABLE
        return StoredIntent(stored["generation"], stored["sha256"]) if stored else StoredIntent(0, "")

    def put_intent(
        self, intent: RouterIntent, document: bytes, *, request_ids: Sequence[str], acknowledged_freeze: str
    ) -> Answered | Refused | Unreachable:
        self.agents.sent.append((self.router, self.agents.now))
        if self.agents.unreachable:
            return UNREACHABLE
        status, answer = self.agents.by_router[self.router].put(document)
        if status != 200:
            return Refused(status, answer)
        return reply_decode(json.dumps(answer).encode(), sent=intent)


@pytest.fixture
def agents(isp: Isp, monkeypatch: pytest.MonkeyPatch) -> Agents:
    agents = Agents(isp, {name: StandInAgent(name) for name in ("rhino", "hippo")}, clock.now())
    monkeypatch.setattr("provisioning.convergence.agent_of", lambda router: Client(agents, router.name))
    return agents


@pytest.fixture
def placed(isp: Isp, alice: User, agents: Agents) -> Order:
    """Order a customer's line to a port that rhino's VPP does not have."""
    agents.rhino_answers(a=ABSENT)
    return order(isp, alice, now=agents.now)


def rows(isp: Isp, router: str) -> int:
    return Attempt.objects.filter(router=isp.routers[router]).count()


@pytest.mark.parametrize(
    "hours", [timedelta(hours=2), pytest.param(timedelta(hours=6), marks=pytest.mark.release)]
)
def test_order_pending_for_hours_costs_few_intents_and_one_row(
    isp: Isp, agents: Agents, placed: Order, hours: timedelta
) -> None:
    agents.sweep(hours, every_s=60)
    assert timedelta(hours=1) / LONGEST_PAUSE > 10
    assert agents.sent_to("rhino") <= SHORTER_PAUSES + hours // LONGEST_PAUSE
    assert agents.sent_to("hippo") == 1
    assert (rows(isp, "rhino"), rows(isp, "hippo")) == (1, 1)
    kept = Attempt.objects.get(router=isp.routers["rhino"])
    assert kept.times == agents.sent_to("rhino") == kept.generation
    assert (kept.started_at, kept.finished_at) == (agents.sent[0][1], agents.sent[-1][1])
    assert kept.answer["ends"][0]["reason"]["code"] == "unknown_interface"


def test_pauses_grow_from_seconds_to_minutes(agents: Agents, placed: Order) -> None:
    agents.sweep(timedelta(minutes=16), every_s=10)
    sent = [at for router, at in agents.sent if router == "rhino"]
    pauses = [(after - before).total_seconds() for before, after in pairwise(sent)]
    assert pauses[:7] == [10, 20, 40, 80, 160, 300, 300]


def test_pending_end_in_service_is_not_sent_at_every_sweep(isp: Isp, alice: User, agents: Agents) -> None:
    vll = order(isp, alice, now=agents.now).vll
    agents.sweep(timedelta(seconds=10))
    vll.refresh_from_db()
    assert vll.lifecycle == "active"
    agents.rhino_answers(a=ABSENT)
    converge_router(isp.routers["rhino"].pk, now=lambda: agents.now)
    agents.sent.clear()
    agents.sweep(timedelta(hours=1), every_s=60)
    assert 0 < agents.sent_to("rhino") <= SHORTER_PAUSES + timedelta(hours=1) // LONGEST_PAUSE


@pytest.mark.parametrize("minutes", [30, pytest.param(120, marks=pytest.mark.release)])
def test_long_unreachable_router_leaves_one_row(
    isp: Isp, agents: Agents, placed: Order, minutes: int
) -> None:
    agents.unreachable = True
    agents.sweep(timedelta(minutes=minutes), every_s=20)
    kept = Attempt.objects.get(router=isp.routers["rhino"])
    assert (kept.outcome, kept.answer) == ("unreachable", {"error": UNREACHABLE.error})
    assert kept.times > minutes * 5 / 6


def test_each_different_answer_adds_a_row_and_restarts_short_pauses(
    isp: Isp, agents: Agents, placed: Order
) -> None:
    agents.sweep(timedelta(minutes=12), every_s=10)
    agents.rhino_answers(a=end_status("pending", "port_down"))
    agents.sweep(LONGEST_PAUSE, every_s=10)
    assert rows(isp, "rhino") == 2
    agents.sent.clear()
    agents.sweep(timedelta(minutes=2), every_s=10)
    assert agents.sent_to("rhino") >= 1


def test_removal_of_a_pending_end_costs_as_little(isp: Isp, agents: Agents, alice: User) -> None:
    vll = order(isp, alice, now=agents.now).vll
    agents.sweep(timedelta(seconds=10))
    agents.rhino_answers(a=end_status("pending", "contested"))
    Vll.objects.filter(pk=vll.pk).update(wanted_present=False, revision=2, lifecycle="pendingTerminate")
    before = rows(isp, "rhino")
    agents.sweep(timedelta(hours=1), every_s=60)
    assert rows(isp, "rhino") == before + 1


def test_pending_tombstone_costs_as_little(isp: Isp, agents: Agents, alice: User) -> None:
    vll = order(isp, alice, now=agents.now).vll
    agents.sweep(timedelta(seconds=10))
    VllTombstone.objects.create(vll=vll, side="z", router=isp.routers["rhino"], revision=1)
    agents.rhino_answers(z=end_status("conflict", "relabelled"))
    before = rows(isp, "rhino")
    agents.sweep(timedelta(hours=1), every_s=60)
    assert rows(isp, "rhino") == before + 1
    assert agents.sent_to("rhino") <= 1 + SHORTER_PAUSES + timedelta(hours=1) // LONGEST_PAUSE


# -- at once ---------------------------------------------------------------------------------------

ABSENT_PORT = (interface("host-bb0"),)
PORT = interface("host-cust1")


@pytest.fixture
def report(agents: Agents, placed: Order) -> Callable[..., None]:
    """Store a report of rhino, sent ``after_s`` after the previous one. Rhino still has a pending end."""
    agents.sweep(timedelta(minutes=9), every_s=60)

    def store(
        *ends: EndObservation,
        after_s: int = 10,
        interfaces: Sequence[InterfaceReport] = ABSENT_PORT,
        **more: Any,
    ) -> None:
        agents.now += timedelta(seconds=after_s)
        generation = agents.by_router["rhino"].stored["generation"]  # type: ignore[index]
        report_ = observed_report(
            sent_ms=int(agents.now.timestamp() * 1000),
            encapsulations=list(Encapsulation),
            generation_stored=generation,
            generation_applied=generation,
            interfaces=tuple(interfaces),
            ends=ends,
        )
        router = agents.isp.routers["rhino"]
        assert observation_take(router=router, report=changed(report_, **more), now=agents.now)

    for _ in range(3):
        store()
    # The last attempt was two minutes ago, and the next one is in three minutes.
    agents.messages()
    RouterConvergence.objects.filter(router=agents.isp.routers["rhino"]).update(
        last_answered_at=agents.now - timedelta(minutes=2), next_query_at=agents.now + timedelta(minutes=3)
    )
    agents.sent.clear()
    return store


def test_report_without_changes_does_not_end_the_pause(
    isp: Isp, agents: Agents, report: Callable[..., None]
) -> None:
    report()
    assert not agents.rhino_has_a_message()
    assert routers_due(now=agents.now) == []


def test_router_gets_its_intent_when_the_port_appears(
    isp: Isp, agents: Agents, report: Callable[..., None], placed: Order
) -> None:
    report(interfaces=(*ABSENT_PORT, PORT))
    assert agents.rhino_has_a_message()
    assert routers_due(now=agents.now) == [isp.routers["rhino"].pk]
    agents.by_router["rhino"].answer = None
    agents.sweep(timedelta(seconds=5))
    placed.refresh_from_db()
    assert (placed.state, placed.vll.ends.get(side="a").status) == ("completed", "verified")
    assert RouterConvergence.objects.get(router=isp.routers["rhino"]).next_query_at is None


def test_port_set_up_ends_the_pause_and_its_link_does_not(
    agents: Agents, report: Callable[..., None]
) -> None:
    report(interfaces=(*ABSENT_PORT, interface("host-cust1", admin_up=False)))
    agents.sweep(timedelta(seconds=5))
    report(interfaces=(*ABSENT_PORT, interface("host-cust1", admin_up=False, link_up=False)))
    assert not agents.rhino_has_a_message()
    report(interfaces=(*ABSENT_PORT, interface("host-cust1", link_up=False)))
    assert agents.rhino_has_a_message()


@pytest.mark.parametrize("seconds", [120, pytest.param(300, marks=pytest.mark.release)])
def test_flapping_port_does_not_shorten_the_pauses(
    isp: Isp, agents: Agents, report: Callable[..., None], seconds: int
) -> None:
    for second in range(seconds):
        report(after_s=1, interfaces=(*ABSENT_PORT, PORT) if second % 2 else ABSENT_PORT)
        for router in {*routers_due(now=agents.now), *agents.messages()}:
            converge_router(router, now=lambda: agents.now)
    assert seconds / 24 < agents.sent_to("rhino") <= seconds // FIRST_PAUSE.total_seconds() + 1
    assert rows(isp, "rhino") == 1


def test_end_built_by_the_agent_meanwhile_ends_the_pause(
    agents: Agents, report: Callable[..., None], placed: Order
) -> None:
    report(observed_end(placed.vll_id, "a", in_sync=False))
    assert not agents.rhino_has_a_message()
    report(observed_end(placed.vll_id, "a", revision=2))
    assert not agents.rhino_has_a_message()
    report(observed_end(placed.vll_id, "a"))
    assert agents.rhino_has_a_message()


@pytest.mark.parametrize(
    "change",
    [{"boot_id": str(uuid4())}, {"vpp_boot_ms": 1_790_000_900_000}, {"after_s": 20}],
    ids=["agent restarted", "VPP restarted", "router was silent"],
)
def test_returned_router_gets_its_intent_immediately(
    agents: Agents, report: Callable[..., None], change: dict[str, Any]
) -> None:
    report(**change)
    assert agents.rhino_has_a_message()


def test_reconnected_vpp_gets_its_intent_immediately(agents: Agents, report: Callable[..., None]) -> None:
    report(vpp_connected=False, vpp_boot_ms=None, interfaces=(), encapsulations=())
    assert not agents.rhino_has_a_message()
    report()
    assert agents.rhino_has_a_message()


def test_change_during_an_attempt_is_sent_without_a_pause(
    isp: Isp, agents: Agents, report: Callable[..., None]
) -> None:
    """The answer was sent before the port appeared, and the message finds the router claimed."""
    rhino = agents.by_router["rhino"]

    def add_port_meanwhile(intent: dict[str, Any]) -> tuple[int, Any]:
        report(after_s=1, interfaces=(*ABSENT_PORT, PORT))
        return rhino.accept(intent, a=ABSENT)

    rhino.answer = add_port_meanwhile
    converge_router(isp.routers["rhino"].pk, now=lambda: agents.now)
    waiting = RouterConvergence.objects.get(router=isp.routers["rhino"])
    assert waiting.next_query_at == agents.now + FIRST_PAUSE
    agents.rhino_answers(a=ABSENT)
    converge_router(isp.routers["rhino"].pk, now=lambda: agents.now)
    waiting.refresh_from_db()
    assert waiting.next_query_at == agents.now + LONGEST_PAUSE


def test_other_order_and_new_revision_are_sent_immediately(
    isp: Isp, alice: User, agents: Agents, placed: Order
) -> None:
    agents.sweep(timedelta(minutes=12), every_s=30)
    assert routers_due(now=agents.now) == []
    other = {"a_end": end(isp, "rhino:host-cust1", outer=7), "z_end": end(isp, "hippo:host-cust1", outer=7)}
    order(isp, alice, cir_bps=1, **other)
    forget_requests()
    assert routers_due(now=agents.now) == [isp.routers["rhino"].pk, isp.routers["hippo"].pk]
    agents.sweep(timedelta(seconds=5))
    Vll.objects.filter(pk=placed.vll_id).update(revision=2)
    assert isp.routers["rhino"].pk in routers_due(now=agents.now)


def _retry(agents: Agents, nora: User, placed: Order) -> None:
    router_retry(router=agents.isp.routers["rhino"], user=nora, now=agents.now)


def _force_retry(agents: Agents, nora: User, placed: Order) -> None:
    order_force_retry(user=nora, order=placed, now=agents.now)


def _release(agents: Agents, nora: User, placed: Order) -> None:
    for on in (True, False):
        router_lock_set(router=agents.isp.routers["rhino"], on=on, user=nora, now=agents.now)


@pytest.mark.parametrize("retry", [_retry, _force_retry, _release])
def test_forced_retry_sends_immediately(
    isp: Isp,
    agents: Agents,
    report: Callable[..., None],
    placed: Order,
    nora: User,
    retry: Callable[[Agents, User, Order], None],
) -> None:
    retry(agents, nora, placed)
    assert agents.rhino_has_a_message()
    # The retry is due also when the message is lost.
    assert isp.routers["rhino"].pk in routers_due(now=agents.now)


def test_agent_that_lost_its_intent_gets_it_immediately(
    isp: Isp, agents: Agents, report: Callable[..., None]
) -> None:
    ObservedRouter.objects.filter(router=isp.routers["rhino"]).update(generation_stored=None)
    assert routers_due(now=agents.now) == [isp.routers["rhino"].pk]
