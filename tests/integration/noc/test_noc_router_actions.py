"""Maintenance takes no new work, a hold sends nothing, and a retry waits for nothing."""

from datetime import timedelta
from typing import Any

import pytest

from portal.accounts.account_closing import account_close
from portal.accounts.models import User
from portal.core import clock
from portal.events.models import Event, Outbox
from portal.vll.errors import RouterInMaintenance
from portal.vll.models import RouterConvergence
from portal.vll.operations import order_delete
from portal.vll.router_operations.actions import (
    RECONCILE_WITHIN,
    generation_adopt_ask,
    reconciliations_resend,
    router_hold_set,
    router_maintenance_set,
    router_retry,
)
from provisioning import tasks
from provisioning.converge_job import converge_router
from provisioning.intent_generation_after_restore import generation_count_from
from provisioning.lost_work_sweep import sweep
from provisioning.routers_due import routers_due
from tests.integration.isp import Isp
from tests.integration.orders import order
from tests.integration.router_answers import activate

pytestmark = pytest.mark.django_db


def test_a_router_under_maintenance_takes_no_new_line_and_says_so(isp: Isp, alice: User, nora: User) -> None:
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


def test_nothing_is_sent_to_a_held_router_and_it_catches_up_at_once(
    isp: Isp, alice: User, nora: User
) -> None:
    rhino, hippo, now = isp.routers["rhino"], isp.routers["hippo"], clock.now()
    router_hold_set(router=rhino, on=True, user=nora, now=now)
    order(isp, alice)
    assert routers_due(now=now) == [hippo.pk]
    assert converge_router(rhino.pk) is False
    assert not rhino.attempts.exists()
    Outbox.objects.all().delete()
    router_hold_set(router=rhino, on=False, user=nora, now=now)
    assert routers_due(now=now) == [rhino.pk, hippo.pk]
    assert [(row.task, row.args) for row in Outbox.objects.all()] == [
        ("provisioning.converge_router", [rhino.pk])
    ]


def test_setting_what_is_set_tells_nobody_twice(isp: Isp, nora: User) -> None:
    for _ in range(2):
        router_hold_set(router=isp.routers["rhino"], on=True, user=nora, now=clock.now())
    assert Event.objects.filter(kind="router.held", actor="nora").count() == 1


def test_a_forced_retry_ends_the_pause_after_failures(isp: Isp, alice: User, nora: User) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    order(isp, alice)
    RouterConvergence.objects.create(router=rhino, failures=9, retry_at=now + timedelta(minutes=1))
    assert rhino.pk not in routers_due(now=now)
    router_retry(router=rhino, user=nora, now=now)
    assert rhino.pk in routers_due(now=now)


def test_the_portal_asks_for_a_reconciliation_that_provisioning_knows(isp: Isp, nora: User) -> None:
    generation_adopt_ask(router=isp.routers["rhino"], user=nora, now=clock.now())
    asked = Outbox.objects.get()
    assert asked.task == tasks.adopt_generation.name
    assert asked.args == [isp.routers["rhino"].pk, "nora"]


def test_a_reconciliation_whose_task_is_lost_is_sent_again_until_it_is_carried_out(
    isp: Isp, nora: User
) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    generation_adopt_ask(router=rhino, user=nora, now=now)

    def sent(after: timedelta) -> list[list[Any]]:
        Outbox.objects.all().delete()
        sweep(now=now + after)
        return list(Outbox.objects.filter(task=tasks.adopt_generation.name).values_list("args", flat=True))

    assert sent(timedelta(seconds=59)) == []
    assert sent(timedelta(seconds=61)) == [[rhino.pk, "nora"]]
    assert sent(timedelta(seconds=62)) == []
    assert sent(timedelta(seconds=122)) == [[rhino.pk, "nora"]]
    generation_count_from(router=rhino, held=7, actor="nora", now=now)
    assert sent(timedelta(seconds=200)) == []


def test_a_reconciliation_is_not_carried_out_long_after_somebody_requested_it(isp: Isp, nora: User) -> None:
    rhino, now = isp.routers["rhino"], clock.now()
    generation_adopt_ask(router=rhino, user=nora, now=now)
    assert reconciliations_resend(now=now + RECONCILE_WITHIN + timedelta(seconds=1)) == 0
    assert RouterConvergence.objects.get(router=rhino).reconcile_requested_at is None


def test_a_reconciliation_of_somebody_whose_account_was_closed_is_not_carried_out(
    isp: Isp, nora: User, nina: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    rhino = isp.routers["rhino"]
    asked: list[Any] = []
    monkeypatch.setattr(
        "provisioning.intent_generation_after_restore.generation_adopt", lambda **what: asked.append(what)
    )
    for user in (nora, nina):
        generation_adopt_ask(router=rhino, user=user, now=clock.now())
        if user == nora:
            account_close(person=nora, now=clock.now())
        tasks.adopt_generation(rhino.pk, user.username)
    assert [each["actor"] for each in asked] == ["nina"]
