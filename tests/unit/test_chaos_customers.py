"""Customers of a storm ask all at once, and whoever works on a router does one thing after another."""

import threading
from pathlib import Path

import httpx

from drills.chaos.customers import Customers
from drills.chaos.plan import Plan, Step
from drills.chaos.timeline import Timeline


class SlowToHold(Customers):
    """The portal takes a hold only once it may, and everything else at once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.taken: list[str] = []
        self.may_hold = threading.Event()

    def _ask(self, step: Step, key: str) -> httpx.Response:
        if step.do == "hold":
            assert self.may_hold.wait(10)
        self.taken.append(step.do)
        return httpx.Response(204)


def test_a_router_is_released_after_it_was_held_however_long_that_takes(tmp_path: Path) -> None:
    steps = (
        Step(0, "hold", router="rhino"),
        Step(1, "freeze", router="hippo"),
        Step(2, "release", router="rhino"),
    )
    customers = SlowToHold(
        plan=Plan(seed=1, seconds=3, steps=steps, faults=()),
        url="http://portal.invalid",
        customer_token="",
        noc_token="",
        ports={},
        handmade_interface=lambda number: ("", ""),
        timeline=Timeline(tmp_path / "timeline.log"),
    )
    asking = [threading.Thread(target=customers.take, args=each) for each in enumerate(steps)]
    for thread in asking:
        thread.start()
    asking[1].join(10)
    assert customers.taken == ["freeze"]
    customers.may_hold.set()
    for thread in asking:
        thread.join(10)
    assert customers.taken == ["freeze", "hold", "release"]
