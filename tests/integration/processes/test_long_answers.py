"""Storing an answer about many VLLs takes longer than a claim, but no other worker interferes."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

import pytest

from portal.accounts.models import User
from portal.core import clock
from portal.inventory.models import Router
from portal.vll.convergence.claims import CLAIM, claim_router
from portal.vll.models import RouterConvergence, VllEnd
from provisioning.convergence import LONGEST_RUN, converge_router
from tests.integration.certificates import certificates
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.stand_in_agent import StandInAgent, serving

pytestmark = pytest.mark.django_db(transaction=True)
VLLS = 6
# Imported by name, because the package has a function with the name of the module.
advancing = import_module("portal.vll.operations.order_progress")


class ManualClock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.at = clock.now()

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def time() -> ManualClock:
    return ManualClock()


@pytest.fixture
def many(isp: Isp, alice: User) -> Iterator[Isp]:
    """Rhino has an agent, and ends of several VLLs."""
    for vlan in range(100, 100 + VLLS):
        ends = (end(isp, "rhino:host-cust1", outer=vlan), end(isp, "hippo:host-cust1", outer=vlan))
        order(isp, alice, a_end=ends[0], z_end=ends[1], cir_bps=1_000_000)
    forget_requests()
    with serving(StandInAgent("rhino"), pki=certificates()) as agent:
        Router.objects.filter(name="rhino").update(agent_url=agent.url)
        yield isp


@pytest.fixture
def each_takes(monkeypatch: pytest.MonkeyPatch, time: ManualClock) -> Any:
    """Return ``each_takes(duration, then)``: storing each VLL takes that long, and then calls ``then``."""
    one = advancing._advance_one

    def set_to(duration: timedelta, then: Any = lambda: None) -> None:
        def slow(*args: Any) -> None:
            one(*args)
            time.at += duration
            then()

        monkeypatch.setattr(advancing, "_advance_one", slow)

    return set_to


def stored_ends() -> int:
    return VllEnd.objects.filter(side="a", status="verified").count()


def test_claim_is_kept_while_an_answer_is_stored(many: Isp, time: ManualClock, each_takes: Any) -> None:
    rhino, others = many.routers["rhino"].pk, []
    # Short enough that the work does not end early, but together longer than one claim.
    each_takes(CLAIM / 5, lambda: others.append(claim_router(rhino, now=time.at)))
    assert CLAIM / 5 * VLLS > CLAIM
    assert converge_router(rhino, now=time)
    assert others == [None] * VLLS
    assert stored_ends() == VLLS
    assert RouterConvergence.objects.get(router=rhino).claim is None


def test_answer_that_takes_too_long_is_continued_by_another_task(
    many: Isp, time: ManualClock, each_takes: Any
) -> None:
    rhino = many.routers["rhino"].pk
    each_takes(LONGEST_RUN / 2)
    assert converge_router(rhino, now=time)
    assert 0 < stored_ends() < VLLS
    assert [args for _, args in requested("provisioning.converge_router")] == [[rhino]]
    each_takes(timedelta(0))
    assert converge_router(rhino, now=time)
    assert stored_ends() == VLLS


def test_worker_that_lost_the_claim_stores_nothing_more(
    many: Isp, time: ManualClock, each_takes: Any
) -> None:
    rhino = many.routers["rhino"].pk
    each_takes(CLAIM / 2, lambda: RouterConvergence.objects.update(claim=None))
    converge_router(rhino, now=time)
    assert stored_ends() == 1
