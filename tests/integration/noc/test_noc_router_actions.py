"""Maintenance refuses new lines, paused sending sends nothing, and a forced retry ends the pause."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Self

import pytest

from portal.accounts.models import User
from portal.accounts.people import account_close
from portal.core import clock
from portal.events.models import Event
from portal.inventory.models import Router
from portal.vll.convergence.claims import routers_due
from portal.vll.convergence.requests import (
    RECONCILE_WITHIN,
    generation_adopt_request,
    generation_count_from,
    reconciliations_resend,
)
from portal.vll.errors import RouterInMaintenance
from portal.vll.models import RouterConvergence
from portal.vll.operations.line_removal import order_delete
from portal.vll.router_operations.actions import router_lock_set, router_maintenance_set, router_retry
from provisioning import tasks
from provisioning.convergence import converge_router
from provisioning.lost_work_sweep import sweep
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db


def test_router_in_maintenance_refuses_new_lines_with_a_reason(isp: Isp, alice: User, nora: User) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    router_maintenance_set(router=rhino, on=True, user=nora, now=now)
    with pytest.raises(RouterInMaintenance) as refusal:
        order(isp, alice)
    assert refusal.value.field == "a_end.port"
    assert "not affected" in refusal.value.sentence
    router_maintenance_set(router=rhino, on=False, user=nora, now=now)
    order(isp, alice)


def test_lines_in_service_can_be_removed_during_maintenance(isp: Isp, alice: User, nora: User) -> None:
    vll = order(isp, alice).vll
    activate(vll)
    router_maintenance_set(router=isp.routers["rhino"], on=True, user=nora, now=clock.now())
    order_delete(user=alice, vll=vll, now=clock.now())
    assert isp.routers["rhino"].pk in routers_due(now=clock.now())


def test_paused_router_receives_nothing_and_catches_up_immediately(isp: Isp, alice: User, nora: User) -> None:
    rhino, hippo, now = isp.routers["rhino"], isp.routers["hippo"], clock.now()
    router_lock_set(router=rhino, on=True, user=nora, now=now)
    order(isp, alice)
    assert routers_due(now=now) == [hippo.pk]
    assert converge_router(rhino.pk) is False
    assert not rhino.attempts.exists()
    forget_requests()
    router_lock_set(router=rhino, on=False, user=nora, now=now)
    assert routers_due(now=now) == [rhino.pk, hippo.pk]
    assert requested() == [("provisioning.converge_router", [rhino.pk])]


def test_setting_the_same_state_again_sends_no_event(isp: Isp, nora: User) -> None:
    for _ in range(2):
        router_lock_set(router=isp.routers["rhino"], on=True, user=nora, now=clock.now())
    assert Event.objects.filter(kind="router.held", actor="nora").count() == 1


def test_forced_retry_ends_the_pause_after_failures(isp: Isp, alice: User, nora: User) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    order(isp, alice)
    RouterConvergence.objects.create(router=rhino, failures=9, retry_at=now + timedelta(minutes=1))
    assert rhino.pk not in routers_due(now=now)
    router_retry(router=rhino, user=nora, now=now)
    assert rhino.pk in routers_due(now=now)


def test_portal_requests_a_reconciliation_by_its_task_name(isp: Isp, nora: User) -> None:
    now = clock.now()
    generation_adopt_request(router=isp.routers["rhino"], user=nora, now=now)
    assert requested() == [(tasks.adopt_generation.name, [isp.routers["rhino"].pk, "nora", now.isoformat()])]


def test_reconciliation_with_a_lost_task_is_resent_until_done(isp: Isp, nora: User) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    generation_adopt_request(router=rhino, user=nora, now=now)

    def sent(after: timedelta) -> list[list[Any]]:
        forget_requests()
        sweep(now=now + after)
        return [args for _, args in requested(tasks.adopt_generation.name)]

    assert sent(timedelta(seconds=5)) == [[rhino.pk, "nora", now.isoformat()]]
    sweep(now=now + timedelta(seconds=10))
    assert sent(timedelta(seconds=40)) == [[rhino.pk, "nora", now.isoformat()]]
    generation_count_from(router=rhino, stored=7, actor="nora", now=now)
    assert sent(timedelta(seconds=200)) == []


def test_old_reconciliation_request_is_not_carried_out(isp: Isp, nora: User) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    generation_adopt_request(router=rhino, user=nora, now=now)
    assert reconciliations_resend(now=now + RECONCILE_WITHIN + timedelta(seconds=1)) == 0
    assert RouterConvergence.objects.get(router=rhino).reconcile_requested_at is None


def test_reconciliation_requested_by_a_closed_account_is_not_carried_out(
    isp: Isp, nora: User, nina: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rhino = isp.routers["rhino"]
    adopted: list[Any] = []
    monkeypatch.setattr(
        "provisioning.intent_generations.generation_adopt",
        lambda **options: adopted.append(options),
    )
    for user in (nora, nina):
        now = clock.now()
        generation_adopt_request(router=rhino, user=user, now=now)
        if user == nora:
            account_close(person=nora, now=clock.now())
        tasks.adopt_generation(rhino.pk, user.username, now.isoformat())
    assert [each["actor"] for each in adopted] == ["nina"]


class _Agent:
    """An agent that stores a generation; ``meanwhile`` runs during the query."""

    def __init__(self, generation: int, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.generation, self.meanwhile, self.queries = generation, meanwhile, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def stored_intent(self) -> SimpleNamespace:
        self.queries += 1
        self.meanwhile()
        return SimpleNamespace(generation=self.generation)


def _agent_is(monkeypatch: pytest.MonkeyPatch, agent: _Agent) -> None:
    monkeypatch.setattr("provisioning.intent_generations.agent_of", lambda _router: agent)


@pytest.mark.parametrize("over", ["carried out", "dropped", "replaced", "too old"])
def test_message_of_a_finished_reconciliation_does_nothing(
    isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch, over: str
) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    requested = now - RECONCILE_WITHIN - timedelta(seconds=1) if over == "too old" else now
    generation_adopt_request(router=rhino, user=nora, now=requested)
    if over == "carried out":
        generation_count_from(router=rhino, stored=7, actor="nora", now=now)
    elif over == "dropped":
        reconciliations_resend(now=now + RECONCILE_WITHIN + timedelta(seconds=1))
    elif over == "replaced":
        generation_adopt_request(router=rhino, user=nora, now=now + timedelta(seconds=1))
    agent = _Agent(9)
    _agent_is(monkeypatch, agent)
    tasks.adopt_generation(rhino.pk, "nora", requested.isoformat())
    assert agent.queries == 0
    assert Router.objects.get(pk=rhino.pk).generation == (7 if over == "carried out" else 0)


def test_reconciliation_dropped_during_the_query_changes_nothing(
    isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    generation_adopt_request(router=rhino, user=nora, now=now)
    rows = RouterConvergence.objects.filter(router=rhino)
    _agent_is(monkeypatch, _Agent(9, lambda: rows.update(reconcile_requested_at=None)))
    tasks.adopt_generation(rhino.pk, "nora", now.isoformat())
    assert Router.objects.get(pk=rhino.pk).generation == 0


def test_reconciliation_requested_by_the_previous_release_is_carried_out(
    isp: Isp, nora: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The previous release stores no request, and its task has two arguments."""
    rhino = isp.routers["rhino"]
    _agent_is(monkeypatch, _Agent(9))
    tasks.adopt_generation(rhino.pk, "nora")
    assert Router.objects.get(pk=rhino.pk).generation == 9
