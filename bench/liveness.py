"""The time from the failure of a path until the new status of its line is committed, on two real VPPs."""

import time
from collections.abc import Iterator

from bench.figures import Figure, percentile
from bench.real_vpps import real_vpps
from bench.sizes import sized
from devstack.client import Client
from devstack.routers import vpp
from devstack.routers.vpp_network import BlackHole

FAILURES = sized(20, smallest=2)
GIVE_UP_S = 30
POLL_S = 0.01
_NAME, _UNIT = "liveness_p95_ms", "ms"


def measure() -> Iterator[Figure]:
    try:
        installation = vpp.find()
    except vpp.NotInstalled as reason:
        yield Figure(_NAME, None, _UNIT, str(reason))
        return
    with real_vpps(installation) as (running, dataplane):
        customer = running.client("customer")
        end = {"tagging": "dot1q", "outer_vlan": 100, "inner_vlan": None, "exact_match": True}
        accepted = customer.order(
            a_end=end | {"port": running.port("rhino", "host-cust1")},
            z_end=end | {"port": running.port("hippo", "host-cust1")},
            svc_mtu=1500,
            cir_bps=1_000_000,
            transport="vxlan4",
        )
        customer.wait_completed(accepted.order, timeout_s=GIVE_UP_S)
        holes = [BlackHole(dataplane, near, far) for near, far in (("rhino", "hippo"), ("hippo", "rhino"))]
        times = [_one(customer, accepted.vll, holes[n % 2]) for n in range(FAILURES)]
        note = (
            f"{dataplane.name}, {FAILURES} failures in either direction, 300 ms x 3, polled through the API"
        )
        yield Figure(_NAME, percentile(times, 95) * 1000, _UNIT, note)


def _one(customer: Client, vll: str, hole: BlackHole) -> float:
    """Return the seconds from the first lost frame until a response of the API reports the failure."""
    _await(customer, vll, "up")
    with hole:
        started = time.perf_counter()
        _await(customer, vll, "down")
        return time.perf_counter() - started


def _await(customer: Client, vll: str, state: str) -> None:
    """Wait until both the path and the line have this state."""
    given_up = time.perf_counter() + GIVE_UP_S
    while True:
        line = customer.vll(vll)
        if (line["path"] or {}).get("state") == state and line["oper_status"] == f"op-{state}":
            return
        assert time.perf_counter() < given_up, f"not {state} after {GIVE_UP_S} s: {line['path']}"
        time.sleep(POLL_S)
