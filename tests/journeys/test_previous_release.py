"""The previous release's processes on this release's tables, alone and together with this release's.

This happens during an upgrade, which upgrades the agents last. The tests notice a column, a default or a
value that a migration removed while the previous release still needs it.
"""

import re
from collections.abc import Iterator
from copy import copy

import httpx
import pytest

from devstack.client import Client
from devstack.folders import ROOT
from devstack.isp import small_isp
from devstack.process import accepts, free_ports
from devstack.stack import Stack
from portal.celery import app
from tests.faults.web_page import log_in
from tests.journeys.test_order_to_traffic import an_order
from tests.previous_release import previous_code
from tests.stacks import simulated

WAIT_S = 60
# Errors of PostgreSQL about unexpected tables, and of Celery about an unknown task.
MISFIT = re.compile(r"^.*(?:ProgrammingError|IntegrityError|DataError|unregistered task).*$", re.MULTILINE)

TASK_NAME = re.compile(r'^[A-Z_]+ = (?:_task\()?"([a-z_]+\.[a-z_.]+)"', re.MULTILINE)


@pytest.fixture(scope="module")
def older() -> Iterator[Stack]:
    """Yield the previous release's portal and agents; the portal runs on this release's tables."""
    code = previous_code()
    with simulated(small_isp(), code=code) as running:
        yield running


def ordered(client: Client, stack: Stack, vlan: int) -> str:
    """Order a line, wait until it is in service, and return its id."""
    accepted = client.order(**an_order(stack, vlan=vlan, description=f"Line {vlan}"))
    client.wait_completed(accepted.order, timeout_s=WAIT_S)
    return accepted.vll


def ready(url: str) -> bool:
    return httpx.get(f"{url}/readyz", timeout=30, trust_env=False).status_code == 200


def misfits(stack: Stack) -> dict[str, list[str]]:
    found = {log.name: MISFIT.findall(log.read_text()) for log in stack.portal.logs.glob("*.log")}
    return {name: lines for name, lines in found.items() if lines}


def test_this_release_knows_all_tasks_that_the_previous_one_queues() -> None:
    """A worker drops a message whose task name it does not know."""
    # In release 0.1.0, each package has a separate file with names.
    portal = previous_code() / "portal"
    files = [*portal.glob("*/task_names.py"), *portal.glob("celery_tasks.py")]
    texts = [each.read_text() for each in files]
    names = {name for text in texts for name in TASK_NAME.findall(text)}
    app.loader.import_default_modules()
    assert names
    assert names - app.tasks.keys() == set()


def test_the_previous_release_serves_on_the_tables_of_this_one(older: Stack) -> None:
    alice = older.client("customer")
    assert ready(older.url)
    line = ordered(alice, older, vlan=100)
    assert alice.wait(lambda: alice.carries_traffic(line), timeout_s=WAIT_S)
    page = log_in(older.url, **older.loaded["customer_login"]).get(f"/vlls/{line}/")
    assert (page.status_code, "Line 100" in page.text) == (200, True)
    alice.wait_completed(alice.change(line, cir_bps=20_000_000), timeout_s=WAIT_S)
    alice.wait_completed(alice.remove(line), timeout_s=WAIT_S)
    assert misfits(older) == {}


def test_both_releases_serve_at_the_same_time(older: Stack) -> None:
    newer = copy(older.portal)
    newer.code = ROOT
    (newer.web_port,) = free_ports(1)
    older.family.start(newer.worker_child("newer-worker", queues="provisioning,telemetry", concurrency=1))
    web = older.family.start(newer.web_child("newer-web", newer.web_port))
    web.wait_until(lambda: accepts(newer.web_port), timeout_s=WAIT_S)
    assert ready(newer.url)

    before, after = older.client("customer"), Client(newer.url, older.loaded["customer_token"])
    made_before, made_after = ordered(before, older, vlan=200), ordered(after, older, vlan=201)
    for url, line in ((newer.url, made_before), (older.url, made_after)):
        assert log_in(url, **older.loaded["customer_login"]).get(f"/vlls/{line}/").status_code == 200
    # Each release changes and removes a line of the other one.
    for client, line in ((after, made_before), (before, made_after)):
        client.wait_completed(client.change(line, cir_bps=20_000_000), timeout_s=WAIT_S)
        client.wait_completed(client.remove(line), timeout_s=WAIT_S)
    assert misfits(older) == {}
