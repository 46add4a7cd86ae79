"""The sweeper finds, from database rows alone, the work that lost messages and dead workers left behind."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from portal.accounts.models import User
from portal.allocation.models import VniLease
from portal.core import clock
from portal.core.redis_servers import broker_client
from portal.events.models import Event
from portal.events.task_requests import RESENT_IS_LOST_AFTER_S, TaskRequest, sender
from portal.inventory.models import ObservedRouter, Router
from portal.vll.convergence.claims import claim_router, routers_due, routers_resend
from portal.vll.models import RouterConvergence, Vll
from portal.vll.operations import state_compare_and_swap
from portal.vll.operations.order_progress import orders_overdue_alarm
from provisioning import intent_generations, tasks
from provisioning.intent_generations import BEHIND_AGENT
from provisioning.lost_work_sweep import behind_agents_announce, sweep, unsent_of_previous_release_send
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate, answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return clock.now()


@pytest.fixture
def vll(isp: Isp, alice: User) -> Vll:
    """Return an ordered line whose messages are lost."""
    placed = order(isp, alice)
    forget_requests()
    return placed.vll


def due(isp: Isp, at: datetime) -> list[str]:
    numbers = {router.pk: name for name, router in isp.routers.items()}
    return [numbers[pk] for pk in routers_due(now=at)]


def test_failing_part_does_not_stop_the_others(
    isp: Isp, vll: Vll, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*, now: datetime) -> None:
        raise ValueError("this row is beyond me")

    monkeypatch.setattr("provisioning.lost_work_sweep.coolings_off_end", fail)
    with pytest.raises(ValueError, match="beyond me"):
        sweep(now=now)
    assert requested("provisioning.converge_router")


def test_lost_message_is_sent_again(isp: Isp, vll: Vll, now: datetime) -> None:
    sweep(now=now)
    sent = {args[0] for _, args in requested("provisioning.converge_router")}
    assert sent == {isp.routers["rhino"].pk, isp.routers["hippo"].pk}


def test_waiting_message_is_not_duplicated(isp: Isp, vll: Vll, now: datetime) -> None:
    assert routers_resend(now=now) == [isp.routers["rhino"].pk, isp.routers["hippo"].pk]
    assert routers_resend(now=now) == []


def test_lost_mark_and_message_are_sent_again(isp: Isp, vll: Vll, now: datetime) -> None:
    both = routers_resend(now=now)
    assert both == [isp.routers["rhino"].pk, isp.routers["hippo"].pk]
    assert routers_resend(now=now + timedelta(seconds=5)) == []
    forget_requests()
    assert routers_resend(now=now + timedelta(seconds=10)) == both


def test_mark_of_a_message_expires(isp: Isp, vll: Vll, now: datetime) -> None:
    rhino = isp.routers["rhino"].pk
    routers_resend(now=now)
    with broker_client(patience_s=5) as broker:
        left = broker.ttl(TaskRequest("provisioning.converge_router", (rhino,)).mark)
    assert 0 < left <= RESENT_IS_LOST_AFTER_S


@pytest.mark.django_db(transaction=True)
def test_delivered_message_does_not_block_the_next(
    isp: Isp, vll: Vll, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    rhino = isp.routers["rhino"].pk
    routers_resend(now=now)
    assert sender.wait_until_sent(10)
    monkeypatch.setattr("provisioning.convergence.converge_promptly", lambda _router: True)
    tasks.converge_router.apply((rhino,))
    assert routers_resend(now=now + timedelta(seconds=6)) == [rhino]


def test_settled_vll_needs_no_intent(isp: Isp, vll: Vll, now: datetime) -> None:
    activate(vll)
    assert due(isp, now) == []


def test_claimed_or_pausing_router_is_not_due(isp: Isp, vll: Vll, now: datetime) -> None:
    claim_router(isp.routers["rhino"].pk, now=now)
    RouterConvergence.objects.create(router=isp.routers["hippo"], retry_at=now + timedelta(seconds=8))
    assert due(isp, now) == []
    assert due(isp, now + timedelta(seconds=8)) == ["hippo"]


def test_router_of_a_killed_worker_is_due_within_75_seconds(isp: Isp, vll: Vll, now: datetime) -> None:
    for name in ("rhino", "hippo"):
        claim_router(isp.routers[name].pk, now=now)
    assert due(isp, now + timedelta(seconds=70)) == ["rhino", "hippo"]


def wait(isp: Isp, name: str, *, until: datetime) -> None:
    claim = claim_router(isp.routers[name].pk, now=clock.now())
    assert claim is not None
    claim.release_accepted(retry_in=until - clock.now(), now=clock.now())
    RouterConvergence.objects.filter(router=isp.routers[name]).update(next_query_at=until)


@pytest.mark.parametrize("status", ["pending", "conflict", "failed"])
def test_router_gets_its_intent_again_when_its_pause_is_over(
    isp: Isp, vll: Vll, now: datetime, status: str
) -> None:
    answer(vll, "z", "verified")
    answer(vll, "a", status, reason={"code": "unknown_interface"})
    later = now + timedelta(seconds=80)
    wait(isp, "rhino", until=later)
    assert due(isp, later - timedelta(seconds=1)) == []
    assert due(isp, later) == ["rhino"]


def test_new_revision_is_due_immediately_despite_an_earlier_answer(isp: Isp, vll: Vll, now: datetime) -> None:
    answer(vll, "a", "pending", reason={"code": "unknown_interface"})
    answer(vll, "z", "verified")
    wait(isp, "rhino", until=now + timedelta(hours=1))
    Vll.objects.filter(pk=vll.pk).update(revision=2)
    assert due(isp, now) == ["rhino", "hippo"]


def test_router_without_an_agent_is_never_due(isp: Isp, vll: Vll, now: datetime) -> None:
    Router.objects.filter(name="hippo").update(agent_url="")
    assert due(isp, now) == ["rhino"]


class TestStoredGeneration:
    @pytest.fixture(autouse=True)
    def _settled(self, isp: Isp, vll: Vll, now: datetime) -> None:
        activate(vll)
        Router.objects.filter(name__in=["rhino", "hippo"]).update(generation=7)
        ObservedRouter.objects.update(generation_stored=7, reported_at=now)

    def report(self, name: str, stored: int | None, at: datetime) -> None:
        ObservedRouter.objects.filter(router__name=name).update(generation_stored=stored, reported_at=at)

    def test_agent_with_the_current_generation_needs_nothing(self, isp: Isp, now: datetime) -> None:
        assert due(isp, now) == []

    @pytest.mark.parametrize("stored", [None, 6])
    def test_agent_that_lost_its_intent_gets_it_again(
        self, isp: Isp, now: datetime, stored: int | None
    ) -> None:
        self.report("rhino", stored, now)
        assert due(isp, now) == ["rhino"]

    def test_report_from_before_the_answer_is_no_loss(self, isp: Isp, now: datetime) -> None:
        RouterConvergence.objects.create(router=isp.routers["rhino"], last_answered_at=now)
        self.report("rhino", 6, now + timedelta(seconds=2))
        assert due(isp, now) == []
        self.report("rhino", 6, now + timedelta(seconds=6))
        assert due(isp, now) == ["rhino"]

    def test_agent_ahead_of_the_portal_raises_one_alarm_and_gets_nothing(
        self, isp: Isp, now: datetime
    ) -> None:
        self.report("rhino", 8, now)
        sweep(now=now)
        sweep(now=now + timedelta(seconds=5))
        alarm = Event.objects.get(kind=BEHIND_AGENT)
        assert (alarm.router_id, alarm.data) == (isp.routers["rhino"].pk, {"held": 8, "generation": 7})
        assert len(requested()) == 0


def _failing_for(announce: Any, *, of: str, value: object) -> Any:
    """Return ``announce``, but with a failure for one row."""

    def fail(kind: str, **facts: Any) -> None:
        if facts.get(of) == value:
            raise ValueError("this row is beyond me")
        announce(kind, **facts)

    return fail


def test_failed_announcement_does_not_stop_the_alarms_of_other_orders(
    isp: Isp, alice: User, vll: Vll, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [
        order(
            isp,
            alice,
            a_end=end(isp, "rhino:host-cust1", outer=n),
            z_end=end(isp, "hippo:host-cust1", outer=n),
        )
        for n in (200, 300)
    ]
    broken, fine = sorted(others, key=lambda each: each.pk)
    name = "portal.vll.operations.state_compare_and_swap.announce"
    monkeypatch.setattr(name, _failing_for(state_compare_and_swap.announce, of="order_id", value=broken.pk))
    with pytest.raises(ExceptionGroup):
        orders_overdue_alarm(now=now + timedelta(hours=1))
    alarmed = set(Event.objects.filter(kind="order.overdue").values_list("order_id", flat=True))
    assert fine.pk in alarmed
    assert broken.pk not in alarmed
    broken.refresh_from_db()
    assert broken.alarmed_at is None, "the next sweep tries again"


def test_failed_announcement_does_not_stop_the_alarms_of_other_routers(
    isp: Isp, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("rhino", "hippo"):
        ObservedRouter.objects.update_or_create(
            router=isp.routers[name], defaults={"generation_stored": 8, "reported_at": now}
        )
    first = min(isp.routers["rhino"].pk, isp.routers["hippo"].pk)
    name = "provisioning.intent_generations.announce"
    monkeypatch.setattr(name, _failing_for(intent_generations.announce, of="router_id", value=first))
    with pytest.raises(ExceptionGroup):
        behind_agents_announce(now=now)
    announced = list(Event.objects.filter(kind=BEHIND_AGENT).values_list("router_id", flat=True))
    assert announced == [max(isp.routers["rhino"].pk, isp.routers["hippo"].pk)]


def test_leases_after_their_cool_down_are_deleted_and_others_stay(isp: Isp, vll: Vll, now: datetime) -> None:
    VniLease.objects.filter(owner=vll.pk).update(released_at=now, free_at=now + timedelta(hours=1))
    sweep(now=now)
    assert VniLease.objects.count() == 1
    sweep(now=now + timedelta(hours=1))
    assert VniLease.objects.count() == 0


def test_overdue_order_raises_one_alarm(isp: Isp, vll: Vll, now: datetime) -> None:
    for seconds in (100, 121, 126):
        sweep(now=now + timedelta(seconds=seconds))
    assert Event.objects.filter(kind="order.overdue").count() == 1


def test_failure_of_another_part_does_not_stop_an_alarm(
    isp: Isp, vll: Vll, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("provisioning.lost_work_sweep.routers_resend", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sweep(now=now + timedelta(seconds=121))
    assert Event.objects.filter(kind="order.overdue").count() == 1


def test_requests_that_the_previous_release_stored_are_sent_once(isp: Isp) -> None:
    """Its relay may have ended first."""
    now = clock.now()
    rows = (
        ("provisioning.rebuild_end", '["0198", "a"]', now),
        ("imports.run", '["0199", 1]', now - timedelta(seconds=11)),
    )
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO events_outbox (task, args, created_at) VALUES (%s, %s, %s)", rows)
    forget_requests()
    unsent_of_previous_release_send(now=now)
    assert requested() == [("imports.run", ["0199", 1])], "the relay may still send the other one"
    forget_requests()
    for _ in range(2):
        unsent_of_previous_release_send(now=now + timedelta(seconds=11))
    assert requested() == [("provisioning.rebuild_end", ["0198", "a"])]
