"""Converging a router through a real TLS agent: claims, generations, backoff, and no lost wake-ups."""

import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from portal.accounts.models import User
from portal.allocation.models import BandwidthBooking, PortVlanLease, VniLease
from portal.celery_tasks import CONVERGE_DOUBTFUL
from portal.core import clock
from portal.core.background_work import backoff
from portal.events.models import Event
from portal.inventory.models import Router
from portal.vll.convergence.claims import (
    CLAIM,
    FIRST_RETRY,
    LONGEST_RETRY,
    claim_router,
    is_at_rest,
    routers_due,
)
from portal.vll.convergence.requests import FIRST_PAUSE, intents_renew
from portal.vll.models import Attempt, RouterConvergence, Vll
from portal.vll.operations.line_removal import order_delete
from portal.vll.operations.order_progress import OVERDUE, orders_overdue_alarm
from portal.vll.router_operations.actions import router_retry
from provisioning.convergence import converge_promptly, converge_router
from provisioning.intent_generations import BEHIND_AGENT
from tests.integration.certificates import certificates, register
from tests.integration.isp import Isp
from tests.integration.orders import end, order
from tests.integration.requested_tasks import forget_requests, requested
from tests.integration.stand_in_agent import StandInAgent, end_status, problem, serving

pytestmark = pytest.mark.django_db(transaction=True)

CONTRACT = Path(__file__).parents[2] / "contract"


@pytest.fixture
def agents(isp: Isp) -> Iterator[dict[str, StandInAgent]]:
    """Run Rhino's and Hippo's agents, and store their addresses in the database."""
    folder = certificates()
    with (
        serving(StandInAgent("rhino"), pki=folder) as rhino,
        serving(StandInAgent("hippo"), pki=folder) as hippo,
    ):
        for agent in (rhino, hippo):
            Router.objects.filter(name=agent.router).update(agent_url=agent.url)
        yield {"rhino": rhino, "hippo": hippo}


@pytest.fixture
def rhino(isp: Isp, agents: dict[str, StandInAgent]) -> StandInAgent:
    return agents["rhino"]


def converge(isp: Isp, name: str = "rhino", at: datetime | None = None) -> bool:
    return converge_router(isp.routers[name].pk, now=clock.now if at is None else lambda: at)


def generation(isp: Isp, name: str = "rhino") -> int:
    return Router.objects.get(name=name).generation


def convergence(isp: Isp, name: str = "rhino") -> RouterConvergence:
    return RouterConvergence.objects.get(router=isp.routers[name])


def status_of(vll: Vll) -> tuple[str, str]:
    vll.refresh_from_db()
    return vll.lifecycle, vll.orders.order_by("-ordered_at")[0].state


def test_vll_is_active_after_both_routers_verified_it(
    isp: Isp, alice: User, agents: dict[str, StandInAgent]
) -> None:
    vll = order(isp, alice).vll
    converge(isp, "rhino")
    assert status_of(vll) == ("pendingActive", "inProgress")
    converge(isp, "hippo")
    assert status_of(vll) == ("active", "completed")


def test_removal_needs_the_confirmation_of_both_routers(
    isp: Isp, alice: User, agents: dict[str, StandInAgent]
) -> None:
    vll = order(isp, alice).vll
    for name in agents:
        converge(isp, name)
    order_delete(user=alice, vll=Vll.objects.get(pk=vll.pk), now=clock.now())
    converge(isp, "rhino")
    assert status_of(vll)[0] == "pendingTerminate"
    converge(isp, "hippo")
    assert status_of(vll) == ("terminated", "completed")
    assert agents["rhino"].intents[-1]["removed"][0]["vll"] == str(vll.pk)


def test_relabelled_line_keeps_its_leases_until_its_router_reports_removed(
    isp: Isp, alice: User, agents: dict[str, StandInAgent]
) -> None:
    vll = order(isp, alice).vll
    for name in agents:
        converge(isp, name)
    removal = order_delete(user=alice, vll=Vll.objects.get(pk=vll.pk), now=clock.now())
    relabelled = json.loads((CONTRACT / "replies" / "relabelled.json").read_text())["ends"][0]
    result = {name: relabelled[name] for name in ("status", "reason")}
    agents["rhino"].answer = lambda intent: agents["rhino"].accept(intent, a=result)
    for name in agents:
        converge(isp, name)

    def leases() -> tuple[int, int, int]:
        return (
            PortVlanLease.objects.filter(owner=vll.pk).count(),
            BandwidthBooking.objects.filter(owner=vll.pk).count(),
            VniLease.objects.filter(vni=vll.vni, released_at__isnull=True).count(),
        )

    vll.refresh_from_db()
    assert status_of(vll) == ("pendingTerminate", "inProgress")
    assert leases() == (2, 2, 1)
    end_a = vll.ends.get(side="a")
    assert (end_a.status, end_a.reason["object"]) == ("conflict", "host-cust1.100 (sw_if_index 7)")
    assert isp.routers["rhino"].pk in routers_due(now=clock.now() + FIRST_PAUSE)
    assert orders_overdue_alarm(now=removal.ordered_at + OVERDUE + timedelta(seconds=1)) == 1
    assert Event.objects.filter(kind="order.overdue", order_id=removal.pk).exists()

    agents["rhino"].answer = None  # the agent reports "removed" now
    converge(isp, "rhino")
    assert status_of(vll) == ("terminated", "completed")
    assert leases() == (0, 0, 0)


def test_permanent_refusal_cleans_the_other_end(
    isp: Isp, alice: User, agents: dict[str, StandInAgent]
) -> None:
    vll = order(isp, alice).vll
    converge(isp, "hippo")
    conflict = end_status("conflict", "foreign_subinterface")
    agents["rhino"].answer = lambda intent: agents["rhino"].accept(intent, a=conflict)
    converge(isp, "rhino")
    agents["rhino"].answer = None
    for name in agents:
        converge(isp, name)
    assert status_of(vll) == ("cancelled", "failed")
    assert vll.orders.get().failure["code"] == "foreign_subinterface"
    assert [end["vll"] for end in agents["hippo"].intents[-1]["removed"]] == [str(vll.pk)]


def test_each_intent_has_a_higher_generation_and_leaves_evidence(isp: Isp, rhino: StandInAgent) -> None:
    for _ in range(3):
        converge(isp)
    assert [intent["generation"] for intent in rhino.intents] == [1, 2, 3]
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.times, attempt.generation) == ("answered", 3, 3)
    assert rhino.stored == {"generation": 3, "sha256": attempt.intent_sha256}


def test_responding_agent_is_not_queried_for_its_state_each_time(isp: Isp, rhino: StandInAgent) -> None:
    queries: list[int] = []
    state = rhino.state
    rhino.state = lambda: queries.append(1) or state()  # type: ignore[method-assign,func-returns-value]
    converge(isp)
    converge(isp)
    assert len(queries) == 1


def test_router_without_an_agent_is_skipped(isp: Isp, rhino: StandInAgent) -> None:
    assert converge(isp, "zebra") is False
    assert Attempt.objects.count() == 0


def test_deleted_router_is_no_error(isp: Isp, rhino: StandInAgent) -> None:
    assert converge_router(10**9) is False


class TestClaims:
    def test_two_concurrent_workers_send_once(self, isp: Isp, rhino: StandInAgent) -> None:
        begun, may_reply = threading.Event(), threading.Event()

        def slow(intent: dict[str, Any]) -> tuple[int, Any]:
            begun.set()
            may_reply.wait(10)
            return rhino.accept(intent)

        rhino.answer = slow
        first = threading.Thread(target=lambda: (converge(isp), connection.close()))
        first.start()
        assert begun.wait(10)
        assert converge(isp) is False
        may_reply.set()
        first.join()
        assert len(rhino.intents) == 1

    def test_one_of_many_claimants_gets_the_claim(self, isp: Isp) -> None:
        router_id, now = isp.routers["rhino"].pk, clock.now()
        start, claims = threading.Barrier(8), []

        def claim() -> None:
            start.wait()
            claims.append(claim_router(router_id, now=now))
            connection.close()

        threads = [threading.Thread(target=claim) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len([each for each in claims if each is not None]) == 1

    def test_order_placed_while_a_worker_is_busy_is_sent_next(
        self, isp: Isp, alice: User, rhino: StandInAgent
    ) -> None:
        first = order(isp, alice)

        def order_meanwhile(intent: dict[str, Any]) -> tuple[int, Any]:
            """Place another order; its message finds the router claimed."""
            order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer=200),
                  z_end=end(isp, "hippo:host-cust1", outer=200), cir_bps=1)  # fmt: skip
            forget_requests()
            assert converge(isp) is False
            connection.close()
            return rhino.accept(intent)

        rhino.answer = order_meanwhile
        converge(isp)
        rhino.answer = None
        assert [args for _, args in requested()] == [[isp.routers["rhino"].pk]]
        converge(isp)
        vlls = {end["vll"] for end in rhino.intents[-1]["present"]}
        assert len(vlls) == 2
        assert str(first.vll_id) in vlls

    def test_change_without_an_order_while_a_worker_is_busy_is_sent_too(
        self, isp: Isp, alice: User, rhino: StandInAgent
    ) -> None:
        """A rename, or a VPP that can police now: an answer to an older intent does not include it."""
        order(isp, alice)
        router = isp.routers["rhino"].pk

        def change_meanwhile(intent: dict[str, Any]) -> tuple[int, Any]:
            intents_renew([router])
            forget_requests()
            assert converge(isp) is False
            connection.close()
            return rhino.accept(intent)

        rhino.answer = change_meanwhile
        converge(isp)
        rhino.answer = None
        assert [args for _, args in requested()] == [[router]]
        assert not is_at_rest(router, now=clock.now())
        # The router is due also when that message is lost.
        assert router in routers_due(now=clock.now())
        assert converge_promptly(router)
        assert len(rhino.intents) == 2
        assert is_at_rest(router, now=clock.now())
        assert router not in routers_due(now=clock.now())

    @pytest.mark.parametrize("written", ["intent_requested", "wanted"])
    def test_previous_and_current_release_read_each_others_requests(
        self, isp: Isp, alice: User, rhino: StandInAgent, written: str
    ) -> None:
        order(isp, alice)
        converge(isp)
        router = isp.routers["rhino"].pk
        if written == "wanted":
            intents_renew([router])
            assert convergence(isp).intent_requested
        else:
            RouterConvergence.objects.filter(router=router).update(intent_requested=True)
        assert not is_at_rest(router, now=clock.now())
        assert converge_promptly(router)
        row = convergence(isp)
        assert (row.intent_requested, row.answered) == (False, row.wanted)

    def test_settled_router_is_not_sent_again(self, isp: Isp, alice: User, rhino: StandInAgent) -> None:
        order(isp, alice)
        forget_requests()
        converge(isp)
        assert len(requested()) == 0

    def test_claim_of_a_dead_worker_expires(self, isp: Isp, rhino: StandInAgent) -> None:
        now = clock.now()
        assert claim_router(isp.routers["rhino"].pk, now=now) is not None
        assert converge(isp, at=now + CLAIM - timedelta(seconds=1)) is False
        assert converge(isp, at=now + CLAIM) is True
        assert len(rhino.intents) == 1

    def test_failed_worker_lets_others_try_soon(
        self, isp: Isp, alice: User, rhino: StandInAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        vll, now = order(isp, alice).vll, clock.now()

        def lose_the_database(**_: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        with monkeypatch.context() as patch:
            patch.setattr("provisioning.convergence.answers_take", lose_the_database)
            with pytest.raises(OperationalError):
                converge(isp, at=now)
        assert convergence(isp).claim is None
        converge(isp, at=now + timedelta(seconds=1))
        assert vll.ends.get(side="a").status == "verified"

    def test_answer_after_the_claim_was_lost_changes_nothing(
        self, isp: Isp, alice: User, rhino: StandInAgent
    ) -> None:
        vll = order(isp, alice).vll

        def lose_the_claim(intent: dict[str, Any]) -> tuple[int, Any]:
            RouterConvergence.objects.update(claimed_until=clock.now())
            claim_router(isp.routers["rhino"].pk, now=clock.now())
            connection.close()
            return rhino.accept(intent)

        rhino.answer = lose_the_claim
        converge(isp)
        assert vll.ends.get(side="a").status == "unasked"
        assert Attempt.objects.count() == 1
        assert convergence(isp).claim is not None


class TestBackoff:
    def test_pause_doubles_from_a_second_to_a_minute(self) -> None:
        waits = [backoff(n, first=FIRST_RETRY, longest=LONGEST_RETRY) for n in (0, 1, 2, 5, 6, 500)]
        assert [wait.total_seconds() for wait in waits] == [1, 2, 4, 32, 60, 60]

    def test_unreachable_router_is_not_queried_for_a_while(self, isp: Isp, rhino: StandInAgent) -> None:
        Router.objects.filter(name="rhino").update(agent_url="https://127.0.0.1:1")
        now = clock.now()
        converge(isp, at=now)
        row = convergence(isp)
        assert (row.failures, row.claim) == (1, None)
        assert row.retry_at == now + timedelta(seconds=1)
        assert "ConnectError" in row.last_error
        assert converge(isp, at=now) is False
        assert converge(isp, at=now + timedelta(seconds=1)) is True
        assert convergence(isp).retry_at == now + timedelta(seconds=3)
        assert set(Attempt.objects.values_list("outcome", flat=True)) == {"unreachable"}

    def test_generations_are_not_consumed_without_answers(self, isp: Isp, rhino: StandInAgent) -> None:
        Router.objects.filter(name="rhino").update(agent_url="https://127.0.0.1:1")
        converge(isp)
        assert generation(isp) == 0

    def test_answer_ends_the_backoff(self, isp: Isp, rhino: StandInAgent) -> None:
        now = clock.now()
        rhino.answer = lambda _: problem(500, "storage")
        converge(isp, at=now)
        assert convergence(isp).failures == 1
        rhino.answer = None
        converge(isp, at=now + timedelta(seconds=2))
        row = convergence(isp)
        assert (row.failures, row.retry_at, row.last_error) == (0, None, "")

    def test_router_with_a_revoked_certificate_receives_nothing(self, isp: Isp, rhino: StandInAgent) -> None:
        register(isp.routers["rhino"], revoked=True)
        converge(isp)
        assert rhino.intents == []
        assert "revoked" in convergence(isp).last_error


class TestRestoredDatabase:
    """The agent stores a newer intent than the restored database."""

    @pytest.fixture(autouse=True)
    def _agent_with_a_newer_intent(self, rhino: StandInAgent) -> None:
        rhino.stored = {"generation": 5, "sha256": "0" * 64}

    def test_nothing_is_sent_and_the_noc_gets_one_alarm(self, isp: Isp, rhino: StandInAgent) -> None:
        now = clock.now()
        for minute in range(3):
            converge(isp, at=now + timedelta(minutes=minute))
        assert rhino.intents == []
        assert generation(isp) == 0
        assert [event.data for event in Event.objects.filter(kind=BEHIND_AGENT)] == [
            {"held": 5, "generation": 0}
        ]
        assert convergence(isp).failures == 3

    @pytest.mark.parametrize("ours", [0, 4])
    def test_refused_generation_is_undone_after_every_attempt(
        self, isp: Isp, rhino: StandInAgent, ours: int
    ) -> None:
        now = clock.now()
        Router.objects.filter(name="rhino").update(generation=ours)
        # The agent answered a moment ago, so the portal does not query its state.
        RouterConvergence.objects.create(router=isp.routers["rhino"], last_answered_at=now)
        rhino.answer = lambda _: problem(
            409, "old-generation" if ours < 4 else "generation-reused", held=5, generation=ours + 1
        )
        for minute in range(10):
            converge(isp, at=now + timedelta(minutes=minute))
        assert generation(isp) == ours
        assert len(rhino.intents) == 1
        assert Event.objects.filter(kind=BEHIND_AGENT).count() == 1

    def test_noc_lets_the_portal_continue_from_the_agents_generation(
        self, isp: Isp, alice: User, rhino: StandInAgent
    ) -> None:
        order(isp, alice)
        converge(isp)
        assert rhino.intents == []
        call_command("reconcile", "rhino", stdout=StringIO())
        converge(isp)
        assert [intent["generation"] for intent in rhino.intents] == [6]
        assert convergence(isp).failures == 0
        assert Event.objects.filter(kind="router.reconciled").count() == 1


class TestInternalErrors:
    """After any error the router is not left claimed, and the NOC can read the reason."""

    def test_internal_error_is_recorded_and_retried(
        self, isp: Isp, rhino: StandInAgent, tmp_path: Path, settings: Any
    ) -> None:
        settings.LONGLINE_PKI_DIR = tmp_path
        with pytest.raises(OSError):
            converge(isp)
        row = convergence(isp)
        assert (row.claim, row.failures) == (None, 1)
        assert "FileNotFoundError" in row.last_error

    @pytest.mark.parametrize("poison", ["a\x00b", "\ud800", float("nan")])
    def test_answer_that_the_database_cannot_store_is_no_answer(
        self, isp: Isp, alice: User, rhino: StandInAgent, poison: Any
    ) -> None:
        order(isp, alice)
        conflict = end_status("conflict", "foreign_tunnel")
        conflict["reason"]["object"] = poison
        rhino.answer = lambda intent: rhino.accept(intent, a=conflict)
        converge(isp)
        assert Attempt.objects.get().outcome == "unreachable"
        assert convergence(isp).claim is None

    def test_worker_that_lost_the_claim_during_the_state_query_sends_nothing(
        self, isp: Isp, rhino: StandInAgent
    ) -> None:
        state = rhino.state

        def slow_state() -> dict[str, Any]:
            RouterConvergence.objects.update(claimed_until=clock.now())
            assert claim_router(isp.routers["rhino"].pk, now=clock.now()) is not None
            connection.close()
            return state()

        rhino.state = slow_state  # type: ignore[method-assign]
        converge(isp)
        assert rhino.intents == []
        assert generation(isp) == 0


class TestSettledRouter:
    """Each order sends a message, but the first intent covers all orders, so further messages do nothing."""

    def at_rest(self, isp: Isp, after_s: float = 1) -> bool:
        return is_at_rest(isp.routers["rhino"].pk, now=clock.now() + timedelta(seconds=after_s))

    @pytest.fixture(autouse=True)
    def settled(self, isp: Isp, alice: User, rhino: StandInAgent) -> None:
        for vlan in (100, 200, 300):
            order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer=vlan),
                  z_end=end(isp, "hippo:host-cust1", outer=vlan), cir_bps=1)  # fmt: skip
        converge(isp)

    def test_one_intent_serves_all_orders_accepted_before_it(self, isp: Isp, rhino: StandInAgent) -> None:
        for _ in range(3):
            assert converge_promptly(isp.routers["rhino"].pk) is False
        assert len(rhino.intents) == 1
        assert len(rhino.intents[0]["present"]) == 3
        assert not requested(CONVERGE_DOUBTFUL)

    def test_message_for_a_claimed_router_costs_one_query(
        self, isp: Isp, alice: User, rhino: StandInAgent, django_assert_num_queries: Any
    ) -> None:
        order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer=400),
              z_end=end(isp, "hippo:host-cust1", outer=400), cir_bps=1)  # fmt: skip
        assert claim_router(isp.routers["rhino"].pk, now=clock.now())
        with django_assert_num_queries(1):
            assert converge_promptly(isp.routers["rhino"].pk) is False
        # The claim of a killed worker expires.
        RouterConvergence.objects.update(claimed_until=clock.now())
        assert converge_promptly(isp.routers["rhino"].pk)
        assert len(rhino.intents[-1]["present"]) == 4

    def test_new_order_is_sent(self, isp: Isp, alice: User) -> None:
        assert self.at_rest(isp)
        order(isp, alice, a_end=end(isp, "rhino:host-cust1", outer=400),
              z_end=end(isp, "hippo:host-cust1", outer=400), cir_bps=1)  # fmt: skip
        assert not self.at_rest(isp)

    def test_answer_counts_only_for_a_moment(self, isp: Isp) -> None:
        assert not self.at_rest(isp, after_s=61)

    def test_noc_can_force_an_intent(self, isp: Isp, nora: User) -> None:
        router_retry(router=isp.routers["rhino"], user=nora, now=clock.now())
        assert not self.at_rest(isp)
        converge(isp)
        assert self.at_rest(isp)

    def test_failure_makes_the_router_unsettled(self, isp: Isp, rhino: StandInAgent) -> None:
        rhino.answer = lambda intent: problem(503, "vpp-unavailable")
        converge(isp)
        assert not self.at_rest(isp)
