"""After `kill -9` of a worker, another worker resumes its orders."""

import os
import signal
import threading
from contextlib import suppress
from uuid import UUID

import pytest

from devstack.process import descendants
from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line, Response, accepted
from tests.faults.continuous_check import Watch
from tests.faults.converging_routers import claims, wait_until_converging

# A sweep every 30 s queues an import again that has made no progress for 60 s.
IMPORTED_WITHIN_S = 180
SITES = 3000
# A router's claim expires after 45 s and an activation test's after 60 s, and a sweep comes at most 5 s
# later. Then the orders continue, two activation tests at a time: 40 take 25 s on an idle machine, 120 on a
# busy one.
RESUMED_WITHIN_S = 240


@pytest.mark.parametrize(("orders", "kills"), [(10, 2), pytest.param(40, 4, marks=pytest.mark.release)])
def test_orders_survive_a_worker_that_is_killed_again_and_again(
    product: Stack, alice: Customer, checker: Checker, line: Line, orders: int, kills: int
) -> None:
    """Kill the children alone and the whole worker by turns, each time while it talks to a router."""
    worker = product.family["worker"]
    answers: list[Response] = []
    ordering = threading.Thread(target=lambda: answers.extend(alice.post_all(line.orders(orders), at_once=4)))
    orphaned: set[UUID] = set()
    with Watch(checker):
        ordering.start()
        for kill in range(kills):
            wait_until_converging(checker, "rhino", "hippo", besides=orphaned)
            children = descendants(worker.process.pid)
            assert children
            if kill % 2:
                worker.end()
                worker.restart()
            else:
                for child in children:
                    with suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
            orphaned = claims(checker, "rhino", "hippo")
        ordering.join()
        assert [answer.status for answer in answers] == [202] * orders
        checker.require_completed((a.order for a in answers), within_s=RESUMED_WITHIN_S)


def test_a_worker_killed_while_it_waits_for_an_agent_is_replaced(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    """Such a worker leaves its claim behind. No worker may use the router until the claim expires."""
    worker, agent = product.family["worker"], product.family["agent-hippo"]
    with Watch(checker):
        agent.freeze()
        try:
            answers = accepted(alice.post_all(line.orders(12)))
            assert len(answers) == 12
            wait_until_converging(checker, "hippo")
            worker.end()
        finally:
            agent.thaw()
        assert claims(checker, "hippo"), "the claim was given up before the worker died: nothing is tested"
        worker.restart()
        checker.require_completed((a.order for a in answers), within_s=RESUMED_WITHIN_S)


@pytest.mark.release
def test_an_import_continues_where_its_worker_was_killed(product: Stack, checker: Checker) -> None:
    """The worker is killed halfway. No row is lost, and none is imported twice."""
    worker = product.family["worker"]
    noc = Customer(product.url, product.loaded["noc_token"])
    table = "name\n" + "".join(f"killed {n}\n" for n in range(SITES))
    identity = noc.import_table("sites", table)

    def state() -> tuple[str, int]:
        found = checker.sql("SELECT state, made FROM imports_import WHERE id = %s", identity)
        return found[0][0], found[0][1]

    def sites() -> int:
        found: int = checker.sql("SELECT count(*) FROM inventory_site WHERE name LIKE 'killed %%'")[0][0]
        return found

    assert wait(lambda: state()[1] > 0, timeout_s=20), "nothing was imported"
    worker.end()
    assert state() == ("importing", sites()), "it was over before its worker was killed: nothing is tested"
    worker.restart()
    assert wait(lambda: state() == ("completed", SITES), timeout_s=IMPORTED_WITHIN_S)
    assert sites() == SITES
