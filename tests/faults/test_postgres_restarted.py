"""When PostgreSQL crashes under load, clients get 503, and orders accepted before are kept."""

import signal
import threading
import time
from collections import Counter
from uuid import uuid4

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line, Response, accepted
from tests.faults.continuous_check import Watch

AWAY_S = 2
TRIES = 100
ENDED_WITHIN_S = 90


def test_a_crash_of_the_database_yields_503_and_never_a_false_202(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    database = product.portal.services.postgres.child
    answers: list[Response] = []
    enough = threading.Event()

    def order_on() -> None:
        """Repeat each order under its idempotency key until it is accepted, as a careful client does."""
        while not enough.is_set():
            body, key = line.order(), str(uuid4())
            for _ in range(TRIES):
                answer = alice.post(body, key=key)
                answers.append(answer)
                if answer.status == 202:
                    break
                time.sleep(0.2)
            enough.wait(0.4)

    clients = [threading.Thread(target=order_on) for _ in range(4)]
    with Watch(checker):
        for client in clients:
            client.start()
        try:
            for _ in range(2):
                time.sleep(1.5)
                # This is what `pg_ctl restart -m immediate` does: no checkpoint, no notice to clients.
                database.end(signal.SIGQUIT)
                time.sleep(AWAY_S)
                database.restart()
            time.sleep(1.5)
        finally:
            enough.set()
            for client in clients:
                client.join()
        promised = accepted(answers)
        checker.require_completed((a.order for a in promised), within_s=ENDED_WITHIN_S)

    refused = [answer for answer in answers if answer.status != 202]
    assert refused, "no client noticed the crash: nothing is tested"
    assert {answer.status for answer in refused} == {503}
    for answer in refused:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["retry-after"]
        assert answer.body["type"].endswith("/api/docs/errors/#unavailable")
        assert answer.body["request_id"]
    # A key has one effect, even if the crash lost the response or the commit.
    effects = Counter(name for (name,) in checker.sql("SELECT description FROM vll_vll"))
    assert {effects[answer.description] for answer in answers} == {1}


def test_every_process_recovers_when_the_database_returns(
    product: Stack, alice: Customer, checker: Checker, line: Line
) -> None:
    database = product.portal.services.postgres.child
    database.end(signal.SIGQUIT)
    time.sleep(AWAY_S)
    database.restart()
    [(back,)] = checker.sql("SELECT now()")
    fresh = "SELECT count(*) FROM inventory_observedrouter WHERE reported_at > %s"
    assert wait(lambda: checker.sql(fresh, back) == [(2,)], timeout_s=30), "the agent API takes no reports"
    # A sweep happens only if beat and a worker both work.
    assert wait(lambda: alice.post(line.order()).status == 202, timeout_s=30), "the web processes"
    for name in ("web", "agent-api", "worker", "sweeper", "beat"):
        product.family[name].raise_if_dead()
