"""Maintenance takes no new work, a hold sends nothing, and a retry waits for nothing."""

from datetime import timedelta

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.events.models import Event, Outbox
from portal.vll.errors import RouterInMaintenance
from portal.vll.models import RouterConvergence
from portal.vll.operations import order_delete
from portal.vll.router_operations.actions import (
    generation_adopt_ask,
    router_hold_set,
    router_maintenance_set,
    router_retry,
)
from provisioning import tasks
from provisioning.converge_job import converge_router
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
