"""Customers of a storm send requests concurrently, except those about one router, which are sequential."""

import threading
from pathlib import Path

import httpx

from drills.chaos.customers import Customers
from drills.chaos.plan import Plan, Step
from drills.chaos.timeline import Timeline


class SlowMaintenanceLock(Customers):
    """A portal that delays maintenance locks and accepts everything else immediately."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.taken: list[str] = []
        self.may_lock = threading.Event()

    def _send_step(self, step: Step, key: str) -> httpx.Response:
        if step.do == "hold":
            assert self.may_lock.wait(10)
        self.taken.append(step.do)
        return httpx.Response(204)


def test_a_router_is_released_after_a_slow_maintenance_lock(tmp_path: Path) -> None:
    steps = (
        Step(0, "hold", router="rhino"),
        Step(1, "freeze", router="hippo"),
        Step(2, "release", router="rhino"),
    )
    customers = SlowMaintenanceLock(
        plan=Plan(seed=1, seconds=3, steps=steps, faults=()),
        url="http://portal.invalid",
        customer_token="",
        noc_token="",
        ports={},
        handmade_interface=lambda number: ("", ""),
        timeline=Timeline(tmp_path / "timeline.log"),
    )
    threads = [threading.Thread(target=customers.take, args=each) for each in enumerate(steps)]
    for thread in threads:
        thread.start()
    threads[1].join(10)
    assert customers.taken == ["freeze"]
    customers.may_lock.set()
    for thread in threads:
        thread.join(10)
    assert customers.taken == ["freeze", "hold", "release"]
