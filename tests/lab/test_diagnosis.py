"""The diagnosis names each single fault, made on real VPPs under a line that carries traffic."""

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pytest

from devstack.client import Client
from devstack.routers.vpp_network import BlackHole
from devstack.traffic import Tag, Wire, frame
from tests.lab.abilities import Ability
from tests.lab.combinations import OUTER, STATIONS, Combination
from tests.lab.conftest import Lab
from tests.lab.lab_line import CIR_BPS, WAIT_S, in_service
from tests.lab.test_policing import must_be_policed

LINE = Combination("vxlan4", "dot1q")
# The portal believes the last report of a silent agent for 35 s.
NAMED_WITHIN_S = 90
GAP_S = 0.02
IN_ORDER = "in-order"
# One fault of each kind that VPP shows. The others mirror them at the far side, or wait for an order or a
# silent agent.
SHOWN_BY_VPP = {"a-port-down", "z-no-frames-in", "a-other-frames-in", "a-policed", "path-down"}
NO_RATE_BPS, BURST_BYTES = 10_000, 4096


@dataclass
class Senders:
    """Both customers, each sending until the test stops it."""

    wires: dict[str, Wire]
    sending: dict[str, threading.Event] = field(default_factory=dict)
    # The VLAN, by side, that a customer uses instead of the line's.
    astray: dict[str, bytes] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def send(self, of: str) -> None:
        packet = bytes(100)
        while not self.stop.wait(GAP_S):
            # Read once, because the test may delete the entry at any moment.
            if astray := self.astray.get(of):
                self._send(of, astray)
            elif self.sending[of].is_set():
                self._send(of, LINE.on_the_wire(of=of, at=of, packet=packet))

    def _send(self, of: str, whole: bytes) -> None:
        """Send a frame. One that the kernel has no room for does not matter among many."""
        try:
            self.wires[of].send(whole)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise


@contextmanager
def sending(lab: Lab) -> Iterator[Senders]:
    ends = lab.ends(LINE.transport, LINE.tagging)
    senders = Senders({side: lab.wire(*ends[side]) for side in "az"})
    threads = []
    for side in "az":
        senders.sending[side] = threading.Event()
        senders.sending[side].set()
        threads.append(threading.Thread(target=senders.send, args=(side,)))
        threads[-1].start()
    try:
        yield senders
    finally:
        senders.stop.set()
        for thread in threads:
            thread.join()


def wait_for_verdict(client: Client, vll: str, code: str) -> str:
    """Return the verdict's sentence once the verdict has the wanted code."""
    found: list[dict[str, Any]] = []

    def is_named() -> bool:
        found.append(client.diagnosis(vll))
        return bool(found[-1]["verdict"]["code"] == code)

    named = client.wait(is_named, timeout_s=NAMED_WITHIN_S)
    codes = [each for each, _ in groupby(each["verdict"]["code"] for each in found)]
    assert named, f"wanted {code}, got {codes}, at last {found[-1]}"
    return str(found[-1]["verdict"]["sentence"])


def test_a_refused_duplicate_vlan_of_a_neighbour_is_repaired_and_named(lab: Lab) -> None:
    """No dump of VPP shows this fault: frames reach the port, but the line's sub-interface takes none."""
    customer, port = lab.stack.client("customer"), lab.ends(LINE.transport, LINE.tagging)["a"][1]
    with in_service(lab, LINE) as vll, sending(lab):
        wait_for_verdict(customer, vll, IN_ORDER)
        answer = lab.dataplane.vpps["rhino"].show(
            f"create sub-interfaces {port} 3999 dot1q {OUTER['a']} exact-match"
        )
        assert "in use" in answer
        sentence = wait_for_verdict(customer, vll, "a-vlan-was-taken")
        [frames] = [each for each in customer.diagnosis(vll)["checks"] if each["code"] == "a_frames_in"]
        assert frames["state"] == "ok"
        lab.report.append(f"lab {LINE}: a-vlan-was-taken: {sentence}")


@pytest.mark.parametrize(
    "only", [SHOWN_BY_VPP, pytest.param(None, marks=pytest.mark.release)], ids=["some", "all"]
)
def test_each_single_fault_is_named(lab: Lab, only: set[str] | None) -> None:
    customer, noc = lab.stack.client("customer"), lab.stack.client("noc")
    family, hippo = lab.stack.family, noc.router("hippo")
    with in_service(lab, LINE) as vll, sending(lab) as senders:
        must_be_policed(lab, LINE, vll)

        def order(what: Callable[[str], str]) -> Callable[[], None]:
            return lambda: customer.wait_completed(what(vll), timeout_s=WAIT_S)

        def change(**wanted: object) -> Callable[[], None]:
            return lambda: customer.wait_completed(customer.change(vll, **wanted), timeout_s=WAIT_S)

        def port(router: str, state: str) -> Callable[[], None]:
            interface = lab.ends(LINE.transport, LINE.tagging)["a" if router == "rhino" else "z"][1]
            return lambda: lab.dataplane.vpps[router].configure(f"set interface state {interface} {state}")

        black_hole = BlackHole(lab.dataplane, "rhino", "hippo")

        other_vlan = frame(
            destination=STATIONS["z"], source=STATIONS["a"], tags=[Tag(3999)], payload=bytes(100)
        )
        faults: list[tuple[str, Callable[[], object], Callable[[], object]]] = [
            ("a-port-down", port("rhino", "down"), port("rhino", "up")),
            ("z-port-down", port("hippo", "down"), port("hippo", "up")),
            ("a-no-frames-in", senders.sending["a"].clear, senders.sending["a"].set),
            ("z-no-frames-in", senders.sending["z"].clear, senders.sending["z"].set),
            (
                "a-other-frames-in",
                lambda: senders.astray.update(a=other_vlan),
                lambda: senders.astray.clear(),
            ),
            (
                "a-policed",
                change(cir_bps=NO_RATE_BPS, cbs_bytes=BURST_BYTES),
                change(cir_bps=CIR_BPS, cbs_bytes=None),
            ),
            ("suspended", order(customer.suspend), order(customer.resume)),
            (
                "z-maintenance",
                lambda: noc.router_action(hippo, "maintenance-begin"),
                lambda: noc.router_action(hippo, "maintenance-end"),
            ),
            ("path-down", black_hole.__enter__, lambda: black_hole.__exit__(None, None, None)),
            ("a-router-silent", family["agent-rhino"].freeze, family["agent-rhino"].thaw),
            ("portal-away", family["agent-api"].freeze, family["agent-api"].thaw),
        ]
        if only is not None:
            assert only <= {code for code, _, _ in faults}
            faults = [fault for fault in faults if fault[0] in only]
        if not lab.can(Ability.PATH_WATCH):
            # Neither routes nor interfaces show a black hole.
            faults = [fault for fault in faults if fault[0] != "path-down"]
            lab.report.append(f"lab: path-down NOT SHOWN on {lab.dataplane.name}: nobody watches its paths")
        wait_for_verdict(customer, vll, IN_ORDER)
        for code, happens, ends in faults:
            happens()
            try:
                sentence = wait_for_verdict(customer, vll, code)
            finally:
                ends()
            wait_for_verdict(customer, vll, IN_ORDER)
            lab.report.append(f"lab {LINE}: {code}: {sentence}")
