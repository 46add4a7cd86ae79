"""The plan of a storm depends on its seed alone, and is complete."""

from collections import defaultdict

import pytest

from drills.chaos.__main__ import failed_once
from drills.chaos.plan import FAULTS, PROCESSES, Plan, make_plan


@pytest.fixture(scope="module")
def long() -> Plan:
    return make_plan(1, 3600)


def test_a_seed_always_makes_the_same_plan() -> None:
    assert make_plan(7, 120) == make_plan(7, 120)
    assert make_plan(7, 120).fingerprint != make_plan(8, 120).fingerprint


def test_seeds_of_failed_storms_are_kept() -> None:
    storms = failed_once()
    assert storms
    for seed, seconds in storms:
        assert make_plan(int(seed), float(seconds)).faults


def test_a_plan_has_every_kind_of_order_and_line(long: Plan) -> None:
    assert {step.do for step in long.steps} == {
        *("create", "change", "suspend", "resume", "remove", "remove-later", "take-back", "cancel", "test"),
        *("let-go", "adopt-again", "adopt", "hold", "release", "freeze", "unfreeze", "freeze-looked"),
        *("maintenance-begin", "maintenance-end"),
    }
    created = [step.requested for step in long.steps if step.do == "create"]
    transports = {"l2xc", "vxlan4", "vxlan6", "geneve4", "geneve6", "gre4", "gre6", "auto"}
    assert {each["transport"] for each in created} == transports
    assert {each["a"]["tagging"] for each in created} == {"untagged", "dot1q", "qinq", "dot1ad"}


def test_a_plan_has_every_fault_of_every_target(long: Plan) -> None:
    assert {(fault.kind, fault.target) for fault in long.faults} == {
        (kind, target) for kind, targets in FAULTS.items() for target in targets
    }


def test_a_target_has_one_fault_at_a_time(long: Plan) -> None:
    broken: dict[str, float] = defaultdict(float)
    for fault in long.faults:
        assert fault.target in PROCESSES or fault.kind in ("cut", "fill")
        assert fault.at_s > broken[fault.target]
        broken[fault.target] = fault.at_s + fault.lasts_s


def test_the_noc_ends_everything_that_it_begins_on_a_router(long: Plan) -> None:
    ends = {"maintenance-begin": "maintenance-end", "freeze": "freeze-looked", "hold": "release"}
    requested = [(step.do, step.router) for step in long.steps]
    for begin, end in ends.items():
        for router in ("rhino", "hippo"):
            assert requested.count((begin, router)) == requested.count((end, router)) > 0
