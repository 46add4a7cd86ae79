"""A steady load. Lines are ordered, read, changed and removed one by one. Meanwhile pages are read."""

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from statistics import median

from devstack.client import Client, NotReached, Refused
from devstack.stack import Stack

EVERY_S = 2.0
WAIT_S = 60
TRANSPORTS = ("vxlan4", "geneve6", "vxlan6", "geneve4", "gre4", "l2xc")
PORT, OTHER_PORT = "host-cust1", "host-cust2"
VLANS = range(100, 4000)


@dataclass
class Load:
    """The load. ``failures`` has a sentence for each order that failed."""

    stack: Stack
    orders: int = 0
    failures: list[str] = field(default_factory=list)
    _order_ms: deque[float] = field(default_factory=deque)
    _list_ms: deque[float] = field(default_factory=deque)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def latencies_ms(self) -> dict[str, float]:
        """Return the median of each kind of request since the last call, in milliseconds. Kinds without
        requests are left out.
        """
        medians = {}
        for name, times in (("order accepted", self._order_ms), ("list read", self._list_ms)):
            taken = [times.popleft() for _ in range(len(times))]
            if taken:
                medians[name] = median(taken)
        return medians

    def _run(self) -> None:
        customer, number = self.stack.client("customer"), 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._one(customer, number)
            except (NotReached, Refused) as problem:
                self.failures.append(f"line {number}: {problem}")
            number += 1
            self._stop.wait(max(0.0, began + EVERY_S - time.monotonic()))

    def _one(self, customer: Client, number: int) -> None:
        transport, vlan = TRANSPORTS[number % len(TRANSPORTS)], VLANS[number % len(VLANS)]
        local = transport == "l2xc"
        a_port = self.stack.port("rhino", PORT)
        z_port = self.stack.port("rhino", OTHER_PORT) if local else self.stack.port("hippo", PORT)
        end = {"tagging": "dot1q", "outer_vlan": vlan, "inner_vlan": None}
        began = time.perf_counter()
        accepted = customer.order(
            description=f"soak {number}",
            a_end=end | {"port": a_port},
            z_end=end | {"port": z_port},
            svc_mtu=1500,
            cir_bps=1_000_000,
            transport=transport,
        )
        self._order_ms.append((time.perf_counter() - began) * 1000)
        customer.wait_completed(accepted.order, timeout_s=WAIT_S)
        began = time.perf_counter()
        customer.lines()
        self._list_ms.append((time.perf_counter() - began) * 1000)
        customer.wait_completed(customer.change(accepted.vll, cir_bps=2_000_000), timeout_s=WAIT_S)
        customer.wait_completed(customer.remove(accepted.vll), timeout_s=WAIT_S)
        self.orders += 3
