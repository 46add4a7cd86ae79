"""A line in the lab, from its order to its removal."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

from devstack.client import Accepted
from tests.lab.combinations import Combination
from tests.lab.conftest import Lab

WAIT_S = 120
PASSING_AGAIN_WITHIN_S = 30
CIR_BPS = 10_000_000


def order(lab: Lab, line: Combination, *, svc_mtu: int) -> Accepted:
    """Place the order. Raises Refused."""
    customer, ends = lab.stack.client("customer"), lab.ends(line.transport, line.tagging)
    wanted = {f"{side}_end": line.end(side, lab.stack.port(*ends[side])) for side in ("a", "z")}
    return customer.order(svc_mtu=svc_mtu, transport=line.transport, cir_bps=CIR_BPS, **wanted)


@contextmanager
def ordered(lab: Lab, line: Combination, *, svc_mtu: int) -> Iterator[Accepted]:
    """Order a line and wait until it is in service. It is always removed: it would block others."""
    customer, accepted = lab.stack.client("customer"), order(lab, line, svc_mtu=svc_mtu)
    try:
        customer.wait_completed(accepted.order, timeout_s=WAIT_S)
        yield accepted
    finally:
        customer.wait_completed(customer.remove(accepted.vll), timeout_s=WAIT_S)


@contextmanager
def in_service(lab: Lab, line: Combination) -> Iterator[str]:
    """Yield the id of a line that passes frames, and remove the line afterwards."""
    with ordered(lab, line, svc_mtu=1500) as accepted:
        pass_both_ways(lab, line)
        yield accepted.vll


def pass_both_ways(lab: Lab, line: Combination) -> None:
    """Send until a frame of each side arrives unchanged at the other."""
    ends = lab.ends(line.transport, line.tagging)
    for of, to in (("a", "z"), ("z", "a")):
        sender, receiver = lab.customers[ends[of]], lab.customers[ends[to]]
        packet = secrets.token_bytes(100)
        receiver.drain()
        deadline = time.monotonic() + PASSING_AGAIN_WITHIN_S
        complaint: str | None = "nothing was sent"
        while complaint is not None:
            assert time.monotonic() < deadline, f"{of} to {to}: {complaint}"
            sender.send(line.on_the_wire(of=of, at=of, packet=packet))
            complaint = receiver.expect(line.on_the_wire(of=of, at=to, packet=packet), timeout_s=0.1)
