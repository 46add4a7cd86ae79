"""Frames of activation tests: the test waits as long as frames may be in transit."""

import time
from typing import Any
from uuid import uuid4

import pytest

from portal.vll.activation_test_procedure import Direction
from provisioning.agent_reply_decoder import FramesSent, TunnelCounters
from provisioning.frame_tests import End, FramesProbe

VLL = uuid4()
# One direction over a geostationary satellite, and the queues before it.
LATE_S = 0.4


class Tunnel:
    """A tunnel that delivers frames late."""

    def __init__(self, unsent: int = 0) -> None:
        # The number of first bursts that a busy router does not send.
        self.unsent = unsent
        self.arrivals: dict[str, list[tuple[float, int]]] = {"a": [], "z": []}

    def agent(self, side: str) -> Any:
        return Agent(self, side)


class Agent:
    def __init__(self, tunnel: Tunnel, side: str) -> None:
        self.tunnel, self.side = tunnel, side

    def send_test_frames(self, *, frame: int, count: int, **_: Any) -> FramesSent:
        now = time.monotonic()
        if count and self.tunnel.unsent:
            self.tunnel.unsent -= 1
            count = 0
        if count:
            self.tunnel.arrivals["z" if self.side == "a" else "a"].append((now + LATE_S, count))
        arrived = sum(count for at, count in self.tunnel.arrivals[self.side] if at <= now)
        return FramesSent(
            schema=1,
            router="",
            vll=VLL,
            end="a" if self.side == "a" else "z",
            revision=1,
            sent=count,
            counters=TunnelCounters(at_ms=0, rx_packets=arrived, tx_packets=0, fragmented=0, reassembled=0),
            vpp_version="25.10",
            agent_version="0.1.0",
        )


def test_slow_frames_are_neither_lost_nor_counted_with_the_next() -> None:
    tunnel = Tunnel()
    probe = FramesProbe({side: End(tunnel.agent(side), VLL, side, 1) for side in "az"}, rate_pps=1000)
    for direction, frame, count in ((Direction.A_TO_Z, 64, 5), (Direction.A_TO_Z, 1518, 100)):
        counted = probe(direction, frame, count)
        assert (counted.sent, counted.received) == (count, count)


def test_an_unsent_burst_is_no_evidence_about_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provisioning.frame_tests.LEAST_S", LATE_S / 4)
    tunnel = Tunnel(unsent=1)
    probe = FramesProbe({side: End(tunnel.agent(side), VLL, side, 1) for side in "az"}, rate_pps=1000)
    assert probe(Direction.A_TO_Z, 64, 5).sent == 0
    assert probe(Direction.A_TO_Z, 64, 5).passes
