"""Test frames through a tunnel: one router's agent sends them, the other router's agent counts them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from portal.vll.activation_test_procedure import Count, Direction
from provisioning.agent_client import AgentClient, Refused, Unreachable
from provisioning.agent_reply_decoder import FramesSent

# TRAVEL_S: the longest wait for frames, in seconds. By satellite they take 0.3 s one way, and a busy router
# or agent adds as much. A frame that arrives later counts as lost, and the count of the next frames includes
# it. As soon as the travel time of some frames is known, the wait is TIMES_AS_LONG times this travel time,
# but at least LEAST_S.
TRAVEL_S = 1.0
TIMES_AS_LONG = 5
LEAST_S = 0.5
# The pauses between two reads of the counter grow, because each read stops the router's forwarding briefly.
READ_EVERY_S, LONGEST_PAUSE_S = 0.01, 0.1


@dataclass(frozen=True, slots=True)
class End:
    """One end of the tested line, and a connection to its agent."""

    agent: AgentClient
    vll: UUID
    side: str
    revision: int

    def send(self, *, frame: int, count: int, rate_pps: int) -> FramesSent:
        """Send frames and return the counters. Raises NotSent."""
        sent = self.agent.send_test_frames(
            vll=self.vll, side=self.side, revision=self.revision, frame=frame, count=count, rate_pps=rate_pps
        )
        if isinstance(sent, Refused | Unreachable):
            raise NotSent(self.side, sent)
        return sent


class NotSent(Exception):
    """An agent refused to send test frames or to read the counters, or it was unreachable."""

    def __init__(self, side: str, outcome: Refused | Unreachable) -> None:
        super().__init__(
            outcome.error if isinstance(outcome, Unreachable) else outcome.problem.get("detail", "")
        )
        self.side, self.outcome = side, outcome


@dataclass(slots=True)
class FramesProbe:
    """A Probe (portal.vll.activation_test_procedure) with two agents. ``ends`` maps each side to its end."""

    ends: Mapping[str, End]
    rate_pps: int
    # The last response of each side's agent.
    responses: dict[str, FramesSent] = field(default_factory=dict)
    # The longest travel time so far; None until frames have arrived.
    _travelled_s: float | None = None

    def __call__(self, direction: Direction, frame: int, count: int) -> Count:
        before = {side: self.responses.get(side) or self._read(side, frame) for side in self.ends}
        sender, receiver = direction.sender, direction.receiver
        self.responses[sender] = self.ends[sender].send(frame=frame, count=count, rate_pps=self.rate_pps)
        sent = self.responses[sender].sent
        had = before[receiver].counters.rx_packets
        left = time.monotonic()
        pause = READ_EVERY_S
        while (received := self._read(receiver, frame).counters.rx_packets - had) < sent:
            if time.monotonic() - left > self._longest_wait_s():
                break
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
        if 0 < sent <= received:
            self._travelled_s = max(self._travelled_s or 0, time.monotonic() - left)
        cut = self.responses[sender].counters.fragmented - before[sender].counters.fragmented
        joined = self.responses[receiver].counters.reassembled - before[receiver].counters.reassembled
        # The router may fragment foreign packets too. The frames can be among the fragments only if there are
        # at least as many fragments as frames.
        return Count(frame, sent, max(0, received), fragmented=0 < sent <= max(cut, joined))

    def _longest_wait_s(self) -> float:
        if self._travelled_s is None:
            return TRAVEL_S
        return min(TRAVEL_S, max(LEAST_S, TIMES_AS_LONG * self._travelled_s))

    def _read(self, side: str, frame: int) -> FramesSent:
        self.responses[side] = self.ends[side].send(frame=frame, count=0, rate_pps=self.rate_pps)
        return self.responses[side]
