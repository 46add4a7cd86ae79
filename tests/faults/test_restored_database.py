"""A database restored from an older backup knows less than the agents: it may alarm but not delete."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devstack.stack import Stack
from drills.checks.checker import Checker, wait
from drills.checks.customer import Customer, Line
from drills.checks.vpptestctl import VppConfig
from drills.restore.dump import dump, restore

# All processes that write automatically. The servers keep running while the database is replaced.
WRITERS = ("worker", "sweeper", "beat")
ALARM_WITHIN_S = 60
RECONCILED_WITHIN_S = 30


@contextmanager
def writers_stopped(product: Stack) -> Iterator[None]:
    for name in WRITERS:
        product.family[name].stop()
    yield
    for name in WRITERS:
        product.family[name].restart()


def owned_by_the_agents(configs: dict[str, VppConfig]) -> dict[str, list[dict]]:
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
    before = owned_by_the_agents(checker.configs())
    [(alarms,)] = checker.sql(ALARMS)

    with writers_stopped(product):
        newer = dump(url, tmp_path / "newer")
        restore(url, older)
    assert wait(lambda: checker.sql(ALARMS)[0][0] >= alarms + 2, timeout_s=ALARM_WITHIN_S), "no alarm"
    # An order over both routers waits for the NOC, as the agents cannot distinguish it from a rewrite.
    late = alice.post(line.order(vlan=4000))
    assert late.status == 202
    assert not wait(lambda: checker.states([late.order])[late.order] == "completed", timeout_s=8)
    assert owned_by_the_agents(checker.configs()) == before

    listing = product.portal.manage("reconcile", "--dry-run", "--all")
    for end in "az":
        [row] = [row for row in listing.splitlines() if f"quarantined {unknown.vll} {end}: " in row]
        assert f"{line.interface}." in row
        assert "VNI " in row
    assert "lines quarantined: 1;" in listing
    product.portal.manage("reconcile", "--all")
    checker.require_terminal([late.order], within_s=RECONCILED_WITHIN_S)
    after = owned_by_the_agents(checker.configs())
    for router, owned in before.items():
        assert [each for each in after[router] if unknown.vll in each["tag"]] == [
            each for each in owned if unknown.vll in each["tag"]
        ], "what the older database does not know must go on forwarding"
    checker.require_completed([alice.remove(late.vll)], within_s=30)

    with writers_stopped(product):
        restore(url, newer)
    product.portal.manage("reconcile", "--all")
    checker.require_rest(within_s=RECONCILED_WITHIN_S)
    assert owned_by_the_agents(checker.configs()) == before


ALARMS = "SELECT count(*) FROM events_event WHERE kind = 'router.behind_agent'"
