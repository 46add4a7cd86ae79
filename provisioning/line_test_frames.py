"""Test frames through a tunnel: one router's agent sends them, the other one's counts what arrives."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from portal.vll.line_test_procedure import Count, Direction
from provisioning.agent_client import AgentClient, Refused, Unreachable
from provisioning.agent_reply_decoder import FramesSent

# Frames on their way are waited for so long at the most, in seconds. By satellite they take 0.3 s one way,
# and a busy router or agent is late by as much: what comes later still would be taken for lost, and then
# counted among the next ones. Once frames have arrived, others get this many times as long, and at least
# LEAST_S.
TRAVEL_S = 1.0
TIMES_AS_LONG = 5
LEAST_S = 0.5
# The pauses between two looks at the counter grow: each look stops the router's forwarding for a moment.
LOOK_S, LONGEST_LOOK_S = 0.01, 0.1


@dataclass(frozen=True, slots=True)
class End:
    """One end of the line that is tested, and a conversation with its agent."""

    agent: AgentClient
    vll: UUID
    side: str
    revision: int

    def send(self, *, frame: int, count: int, rate_pps: int) -> FramesSent:
        """Raises NotSent."""
        sent = self.agent.send_test_frames(
            vll=self.vll, side=self.side, revision=self.revision, frame=frame, count=count, rate_pps=rate_pps
        )
        if isinstance(sent, Refused | Unreachable):
            raise NotSent(self.side, sent)
        return sent


class NotSent(Exception):
    """An agent did not do its part."""

    def __init__(self, side: str, outcome: Refused | Unreachable) -> None:
        super().__init__(
            outcome.error if isinstance(outcome, Unreachable) else outcome.problem.get("detail", "")
        )
        self.side, self.outcome = side, outcome


@dataclass(slots=True)
class FramesProbe:
    """A Probe (portal.vll.line_test_procedure) that is made of two agents; ``ends`` by side."""

    ends: Mapping[str, End]
    rate_pps: int
    # By side, what the agent said last.
    said: dict[str, FramesSent] = field(default_factory=dict)
    # How long the slowest frames took that have arrived; None: none have.
    _travelled_s: float | None = None

    def __call__(self, direction: Direction, frame: int, count: int) -> Count:
        before = {side: self.said.get(side) or self._read(side, frame) for side in self.ends}
        sender, receiver = direction.sender, direction.receiver
        self.said[sender] = self.ends[sender].send(frame=frame, count=count, rate_pps=self.rate_pps)
        sent = self.said[sender].sent
        had = before[receiver].counters.rx_packets
        left = time.monotonic()
        pause = LOOK_S
        while (received := self._read(receiver, frame).counters.rx_packets - had) < sent:
            if time.monotonic() - left > self._patience_s():
                break
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_S)
        if 0 < sent <= received:
            self._travelled_s = max(self._travelled_s or 0, time.monotonic() - left)
        cut = self.said[sender].counters.fragmented - before[sender].counters.fragmented
        joined = self.said[receiver].counters.reassembled - before[receiver].counters.reassembled
        # The router may cut frames of others too: only as many pieces as frames, or more, are these.
        return Count(frame, sent, max(0, received), fragmented=0 < sent <= max(cut, joined))

    def _patience_s(self) -> float:
        if self._travelled_s is None:
            return TRAVEL_S
        return min(TRAVEL_S, max(LEAST_S, TIMES_AS_LONG * self._travelled_s))

    def _read(self, side: str, frame: int) -> FramesSent:
        self.said[side] = self.ends[side].send(frame=frame, count=0, rate_pps=self.rate_pps)
        return self.said[side]
