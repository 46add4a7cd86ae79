"""The NOC repairs drift that the agent reports field by field, because its configuration leaves drift."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from devstack.process import Child
from devstack.stack import Stack
from drills.checks.vpptestctl import VppTestctl
from tests.browser.reader import Reader


@pytest.fixture
def reporting_agent(live_stack: Stack) -> Iterator[Child]:
    """Yield Rhino's agent with a configuration that reports drift and leaves it (agent.yaml: drift)."""
    agent = live_stack.family["agent-rhino"]
    config = Path(agent.argv[-1])
    as_it_was = config.read_text()

    def start_with(text: str) -> None:
        config.write_text(text)
        agent.end()
        agent.restart()

    start_with(f"{as_it_was}drift: hold\n")
    yield agent
    start_with(as_it_was)


@pytest.fixture
def changed_by_hand(live_stack: Stack, reporting_agent: Child) -> Iterator[str]:
    """Yield the name of a line's sub-interface on Rhino that was deleted from VPP by hand."""
    customer, vpp = live_stack.client("customer"), rhino(live_stack)
    end = {"tagging": "dot1q", "outer_vlan": 777}
    ordered = customer.order(
        description="Drifting",
        a_end={**end, "port": live_stack.port("rhino", "host-cust2")},
        z_end={**end, "port": live_stack.port("hippo", "host-cust2")},
        svc_mtu=1500,
        cir_bps=1_000_000,
        transport="vxlan4",
    )
    customer.wait_completed(ordered.order, timeout_s=60)
    [name] = [each["name"] for each in vpp.config().tagged(ordered.vll) if "host-cust2" in each["name"]]
    vpp.delete_sub(name)
    yield name
    customer.wait_completed(customer.remove(ordered.vll), timeout_s=60)


def rhino(running: Stack) -> VppTestctl:
    return VppTestctl(running.sockets["rhino"].api)


def reload_until(page: Page, so: Callable[[], bool], *, timeout_s: float = 60) -> None:
    """Reload the page until the condition is true. Reports come every two seconds, but the page is static."""
    deadline = time.monotonic() + timeout_s
    while not so():
        assert time.monotonic() < deadline, page.get_by_role("main").inner_text()
        page.wait_for_timeout(500)
        page.reload()


def test_the_noc_sees_and_repairs_a_manual_change(
    live_stack: Stack, reader: Callable[..., Reader], changed_by_hand: str
) -> None:
    nina, vpp = reader(live_stack.url), rhino(live_stack)
    nina.sign_in(**live_stack.loaded["noc_login"])
    nina.open("/noc/")
    reload_until(nina.page, nina.page.get_by_role("link", name="Drifting").is_visible)

    nina.open("/routers/")
    nina.page.get_by_role("link", name="rhino", exact=True).click()
    drift = nina.page.get_by_role("region", name="Drift")
    reload_until(nina.page, drift.is_visible)
    row = drift.get_by_role("row").filter(has_text="Drifting").first
    expect(row).to_contain_text(changed_by_hand)
    assert nina.accessibility_violations() == []
    assert vpp.config().named(changed_by_hand) is None, "an agent that should leave drift repaired it"

    nina.page.get_by_role("button", name="Repair now").click()
    expect(nina.page.get_by_text("is being queried again. Its answer appears below.")).to_be_visible()
    reload_until(nina.page, drift.is_hidden)
    assert vpp.config().named(changed_by_hand) is not None
    assert nina.complaints == []
