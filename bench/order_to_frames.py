"""The time from an accepted order until frames arrive in both directions. Only a real VPP forwards frames."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime

from bench.figures import Figure, percentile
from bench.real_vpps import real_vpps
from bench.sizes import sized
from devstack import stack
from devstack.client import Client
from devstack.routers import vpp
from devstack.routers.vpp_network import UNI
from devstack.traffic import Tag, Wire, frame

ORDERS = sized(20, smallest=1)
PORT = "host-cust1"
CUSTOMERS = ("rhino", "hippo")
GIVE_UP_S = 30
_FIGURES = (
    ("order_to_frames_p50_s", "s"),
    ("order_to_frames_p95_s", "s"),
    ("activation_test_p95_ms", "ms"),
)
STATIONS = {"rhino": bytes.fromhex("02000000000a"), "hippo": bytes.fromhex("02000000000b")}


def measure() -> Iterator[Figure]:
    try:
        installation = vpp.find()
    except vpp.NotInstalled as reason:
        for name, unit in _FIGURES:
            yield Figure(name, None, unit, str(reason))
        return
    with ExitStack() as undo:
        running, dataplane = undo.enter_context(real_vpps(installation))
        wires = {
            router: undo.enter_context(Wire(dataplane.customers[router, PORT], UNI)) for router in CUSTOMERS
        }
        measured = [
            _one(running, running.client("customer"), wires, vlan) for vlan in range(100, 100 + ORDERS)
        ]
        note = f"{dataplane.name}, {ORDERS} orders one after another, each tested with frames"
        times, tests = zip(*measured, strict=True)
        figures = percentile(times, 50), percentile(times, 95), percentile(tests, 95)
        for (name, unit), figure in zip(_FIGURES, figures, strict=True):
            yield Figure(name, figure, unit, note)


def _one(running: stack.Stack, customer: Client, wires: dict[str, Wire], vlan: int) -> tuple[float, float]:
    """Return the seconds from the response 202 until frames have arrived in both directions, and the
    milliseconds that the activation test took.
    """
    end = {"tagging": "dot1q", "outer_vlan": vlan, "inner_vlan": None, "exact_match": True}
    a_end, z_end = (end | {"port": running.port(router, PORT)} for router in CUSTOMERS)
    accepted = customer.order(a_end=a_end, z_end=z_end, svc_mtu=1500, cir_bps=1_000_000, transport="auto")
    started = time.perf_counter()
    rhino, hippo = CUSTOMERS
    for sender, receiver in ((rhino, hippo), (hippo, rhino)):
        whole = frame(
            destination=STATIONS[receiver],
            source=STATIONS[sender],
            tags=[Tag(vlan)],
            payload=secrets.token_bytes(100),
        )
        while wires[receiver].expect(whole, timeout_s=0.01) is not None:
            assert time.perf_counter() - started < GIVE_UP_S, f"no frames after {GIVE_UP_S} s"
            wires[sender].send(whole)
    elapsed = time.perf_counter() - started
    # Frames flow before the portal has verified both ends. A removal before the verification would cancel
    # the order.
    customer.wait_completed(accepted.order, timeout_s=GIVE_UP_S)
    [test] = customer.tests(accepted.vll)
    assert test["state"] == "passed", test["message"]
    began, ended = (datetime.fromisoformat(test[at]) for at in ("started_at", "finished_at"))
    customer.wait_completed(customer.remove(accepted.vll), timeout_s=30)
    return elapsed, (ended - began).total_seconds() * 1000
