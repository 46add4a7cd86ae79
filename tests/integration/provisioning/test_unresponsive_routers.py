"""Fifty routers that drop all packets delay no other router: separate workers handle them."""

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app

from portal.celery_tasks import CONVERGE_DOUBTFUL
from portal.core import clock
from portal.inventory.models import FRESH, ObservedRouter, Router
from portal.vll.convergence.claims import is_unresponsive
from portal.vll.models import RouterConvergence
from provisioning import convergence, tasks
from provisioning.agent_client import Unreachable
from tests.integration.isp import Isp
from tests.integration.requested_tasks import requested

pytestmark = pytest.mark.django_db
DEAD = 50


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the routers that the portal tried to reach over the network. No router answers."""
    tried: list[int] = []

    class Nobody:
        def stored_intent(self) -> Unreachable:
            return Unreachable("ConnectTimeout: timed out")

    def call(router: Router) -> Any:
        tried.append(router.pk)
        return nullcontext(Nobody())

    monkeypatch.setattr(convergence, "agent_of", call)
    return tried


@pytest.fixture
def rhino(isp: Isp) -> Router:
    """Return a router that reports and can be reached."""
    Router.objects.filter(name="rhino").update(agent_url="https://127.0.0.1:1")
    ObservedRouter.objects.filter(router__name="rhino").update(reported_at=clock.now())
    return Router.objects.get(name="rhino")


def fail(router: Router, times: int) -> None:
    now = clock.now()
    RouterConvergence.objects.update_or_create(
        router=router, defaults={"failures": times, "retry_at": now - timedelta(seconds=1)}
    )


def test_fifty_dead_routers_cost_the_other_workers_no_call(
    isp: Isp, rhino: Router, called: list[int]
) -> None:
    dead = [
        Router.objects.create(name=f"dead-{n}", site=rhino.site, agent_url=f"https://192.0.2.{n}:9443")
        for n in range(1, DEAD + 1)
    ]
    for router in dead:
        tasks.converge_router(router.pk)
    ObservedRouter.objects.filter(router=rhino).update(reported_at=clock.now())
    tasks.converge_router(rhino.pk)
    assert called == [rhino.pk]
    assert sorted(args for _, args in requested(CONVERGE_DOUBTFUL)) == [[router.pk] for router in dead]


def test_unresponsive_routers_have_separate_workers(isp: Isp, rhino: Router, called: list[int]) -> None:
    fail(rhino, 2)
    tasks.converge_doubtful_router(rhino.pk)
    assert called == [rhino.pk]
    queues = {
        name: current_app.amqp.router.route({}, name)["queue"].name
        for name in (CONVERGE_DOUBTFUL, "provisioning.converge_router")
    }
    assert queues == {CONVERGE_DOUBTFUL: "doubtful", "provisioning.converge_router": "provisioning"}


def test_breaker_opens_after_two_failures_and_closes_when_the_pause_ends(
    isp: Isp, rhino: Router, called: list[int]
) -> None:
    opened = []
    for _ in range(3):
        opened.append(is_unresponsive(rhino.pk, now=clock.now()))
        convergence.converge_router(rhino.pk)
        RouterConvergence.objects.update(retry_at=clock.now())
    assert opened == [False, False, True]
    # As when the agent reports again, or the NOC forces a retry.
    RouterConvergence.objects.update(retry_at=None)
    assert not is_unresponsive(rhino.pk, now=clock.now())


def test_silent_router_is_unresponsive_before_the_first_call(isp: Isp, rhino: Router) -> None:
    now = clock.now()
    assert not is_unresponsive(rhino.pk, now=now)
    assert is_unresponsive(rhino.pk, now=now + FRESH + timedelta(seconds=1))


def test_answer_makes_a_router_responsive(isp: Isp, rhino: Router) -> None:
    fail(rhino, 5)
    assert is_unresponsive(rhino.pk, now=clock.now())
    RouterConvergence.objects.update(failures=0, retry_at=None)
    assert not is_unresponsive(rhino.pk, now=clock.now())
