"""When a customer's equipment on a real VPP loses its link, the customer's far interface loses carrier."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devstack.client import Json
from devstack.routers.vpp_network import UNI
from tests.lab.combinations import Combination
from tests.lab.conftest import MEMIF_PORTS, Lab
from tests.lab.customers import MemifCustomer, rest_when_idle
from tests.lab.lab_line import CIR_BPS, WAIT_S

# VPP notices when the peer of a memif is gone, but not the peer of a host-interface.
A_END, Z_END = ("rhino", MEMIF_PORTS[0]), ("hippo", "host-cust1")
WHOLE_PORT = Combination("vxlan4", "untagged")


def has_carrier(lab: Lab) -> bool:
    """Return whether the customer's interface at the Z end has a carrier."""
    namespace = lab.dataplane.customers[Z_END]
    shown = subprocess.run(
        ["ip", "-n", namespace, "link", "show", UNI], capture_output=True, text=True, check=True
    )
    return "LOWER_UP" in shown.stdout


@contextmanager
def forwarding_line(lab: Lab, equipment: MemifCustomer) -> Iterator[Callable[[], Json]]:
    """Yield a function that reads a line in service from the API. Remove the line afterwards."""
    customer = lab.stack.client("customer")
    ends = {
        f"{side}_end": WHOLE_PORT.end(side, lab.stack.port(*where))
        for side, where in (("a", A_END), ("z", Z_END))
    }
    accepted = customer.order(
        svc_mtu=1500, transport="vxlan4", cir_bps=CIR_BPS, link_loss_forwarding=True, **ends
    )

    def line() -> Json:
        return customer.vll(accepted.vll)

    try:
        customer.wait_completed(accepted.order, timeout_s=WAIT_S)
        assert customer.wait(lambda: line()["oper_status"] == "op-up", timeout_s=WAIT_S)
        assert has_carrier(lab)
        yield line
    finally:
        customer.wait_completed(customer.remove(accepted.vll), timeout_s=WAIT_S)
        equipment.plug_in()
        rest_when_idle(lab.dataplane.vpps[A_END[0]], A_END[1], equipment)


def test_a_lost_link_takes_down_the_far_ends_carrier_and_restores_it(lab: Lab) -> None:
    wait, equipment = lab.stack.client("customer").wait, lab.customers[A_END]
    assert isinstance(equipment, MemifCustomer)
    with forwarding_line(lab, equipment) as line:
        begun = time.monotonic()
        equipment.unplug()
        assert wait(lambda: not has_carrier(lab), timeout_s=WAIT_S)
        lab.report.append(f"lab: a lost link was forwarded after {time.monotonic() - begun:.1f} s")
        assert wait(lambda: line()["z_end"]["held_down"] is True, timeout_s=WAIT_S)
        health = line()["health"]
        assert health["state"] == "down"
        assert "The link at the Z end has been taken down to signal to your equipment" in health["cause"]
        begun = time.monotonic()
        equipment.plug_in()
        assert wait(lambda: has_carrier(lab), timeout_s=WAIT_S)
        lab.report.append(f"lab: and it was over {time.monotonic() - begun:.1f} s after the link was set up")
        assert wait(lambda: line()["health"]["state"] == "up", timeout_s=WAIT_S)
    # Removing a line while a port is shut for it restores that port. It takes a new line: another loss of the
    # same line would count only after a minute.
    with forwarding_line(lab, equipment):
        equipment.unplug()
        assert wait(lambda: not has_carrier(lab), timeout_s=WAIT_S)
    assert has_carrier(lab)
