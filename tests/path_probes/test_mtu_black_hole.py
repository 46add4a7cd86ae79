"""The probes, and the test of the next order, find a backbone that silently carries smaller packets."""

from collections.abc import Callable

import pytest

from devstack.client import NotReached
from tests.journeys.test_order_to_traffic import an_order
from tests.lab.abilities import Ability
from tests.path_probes.conftest import Probed

WAIT_S = 120
# 8,900 bytes and the Ethernet header; NEEDED adds IPv4, UDP and VXLAN.
FRAME = 8914
NEEDED = FRAME + 36
LEAST = 8000


def wait(probed: Probed, is_so: Callable[[], bool]) -> None:
    assert probed.stack.client("customer").wait(is_so, timeout_s=WAIT_S), probed.path()


def test_a_black_hole_is_found_and_named_to_the_byte(probed: Probed) -> None:
    probed.needs(Ability.ACTIVATION_TESTS)
    customer = probed.stack.client("customer")
    accepted = customer.order(**an_order(probed.stack, vlan=720, transport="vxlan4", svc_mtu=8900))
    customer.wait_completed(accepted.order, timeout_s=WAIT_S)
    wait(probed, lambda: probed.path().get("proven_ip_mtu") == NEEDED)
    path = probed.path()
    assert (path["finding"], path["black_hole_since"], path["probe_transport"]) == ("", None, "vxlan4")
    with probed.backbone_that_carries(LEAST):
        wait(probed, lambda: probed.path()["black_hole_since"] is not None)
        path = probed.path()
        assert (path["finding"], path["proven_ip_mtu"]) == ("large-frames-lost", LEAST)
        # The line is still in service and passes small frames, which its diagnosis shows.
        assert customer.vll(accepted.vll)["lifecycle"] == "active"
        verdict = customer.diagnosis(accepted.vll)["verdict"]
        assert verdict["code"] == "large-frames-lost", verdict
        # The next order finds the black hole with its own test.
        with pytest.raises(NotReached, match=f"passed had {LEAST - 36:,}"):
            another = customer.order(**an_order(probed.stack, vlan=721, transport="vxlan4", svc_mtu=8900))
            customer.wait_completed(another.order, timeout_s=WAIT_S)
    wait(probed, lambda: probed.path()["black_hole_since"] is None)
    assert probed.path()["proven_ip_mtu"] == NEEDED
    customer.wait_completed(customer.remove(accepted.vll), timeout_s=WAIT_S)
    # When the last line is removed, both routers remove the probe.
    wait(probed, lambda: probed.path() == {})


def test_round_trips_are_measured_while_a_line_exists(probed: Probed) -> None:
    customer = probed.stack.client("customer")
    accepted = customer.order(**an_order(probed.stack, vlan=722, transport="vxlan4", svc_mtu=1500))
    customer.wait_completed(accepted.order, timeout_s=WAIT_S)
    wait(probed, lambda: bool(customer.latency(accepted.vll)))
    for _start, least, mean, most, lost in customer.latency(accepted.vll):
        assert 0 < least <= mean <= most
        assert lost == 0
    customer.wait_completed(customer.remove(accepted.vll), timeout_s=WAIT_S)
