"""A database put back from an older backup knows less than the agents: it may alarm, and must not delete."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line
from drills.checks.vpptestctl import VppConfig
from drills.restore.dump import dump, restore

# Whatever writes by itself; the servers stay up and see the database vanish and come back.
WRITERS = ("worker", "sweeper", "beat", "relay")
ALARM_WITHIN_S = 60
RECONCILED_WITHIN_S = 30


@contextmanager
def writers_stopped(product: Stack) -> Iterator[None]:
    for name in WRITERS:
        product.family[name].stop()
    yield
    for name in WRITERS:
        product.family[name].restart()


def ours(configs: dict[str, VppConfig]) -> dict[str, list[dict]]:
    return {router: config.tagged() for router, config in configs.items()}


@pytest.mark.release
def test_an_older_database_alarms_deletes_nothing_and_waits_for_the_noc(
    product: Stack, alice: Customer, checker: Checker, line: Line, tmp_path: Path
) -> None:
    url = product.portal.services.database_url
    older = dump(url, tmp_path / "older")
    unknown = alice.post(line.order())
    checker.require_terminal([unknown.order], within_s=30)
    checker.require_rest(within_s=30)
    before = ours(checker.configs())
    [(told,)] = checker.sql(ALARMS)

    with writers_stopped(product):
        newer = dump(url, tmp_path / "newer")
        restore(url, older)
    assert wait(lambda: checker.sql(ALARMS)[0][0] >= told + 2, timeout_s=ALARM_WITHIN_S), "no alarm"
    # An order that needs both routers has to wait for a human: it cannot be told from a rewrite.
    late = alice.post(line.order(vlan=4000))
    assert late.status == 202
    assert not wait(lambda: checker.states([late.order])[late.order] == "completed", timeout_s=8)
    assert ours(checker.configs()) == before

    listing = product.portal.manage("reconcile", "--dry-run", "--all")
    for end in "az":
        [told_of] = [row for row in listing.splitlines() if f"quarantined {unknown.vll} {end}: " in row]
        assert f"{line.interface}." in told_of
        assert "VNI " in told_of
    assert "lines quarantined: 1;" in listing
    product.portal.manage("reconcile", "--all")
    checker.require_terminal([late.order], within_s=RECONCILED_WITHIN_S)
    after = ours(checker.configs())
    for router, owned in before.items():
        assert [each for each in after[router] if unknown.vll in each["tag"]] == [
            each for each in owned if unknown.vll in each["tag"]
        ], "what the older database does not know must go on forwarding"
    checker.require_completed([alice.remove(late.vll)], within_s=30)

    with writers_stopped(product):
        restore(url, newer)
    product.portal.manage("reconcile", "--all")
    checker.require_rest(within_s=RECONCILED_WITHIN_S)
    assert ours(checker.configs()) == before


ALARMS = "SELECT count(*) FROM events_event WHERE kind = 'router.behind_agent'"
