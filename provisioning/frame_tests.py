"""Activation tests of lines, and measurements of paths: the agents of two routers send and count frames.

Probes of paths find black holes before customers do. Round-trip times are measured once a minute on each path
that lines take.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from portal.core import clock
from portal.inventory.models import FRESH, ObservedRouter, Router
from portal.telemetry.round_trips import RoundTripTimes, round_trips_store
from portal.vll.activation_test_procedure import SIZES, Count, Direction, run
from portal.vll.lines_not_carried import path_assumed
from portal.vll.models import ActivationTest, TunnelPath, VllEnd
from portal.vll.operations.activation_test_lifecycle import (
    Tested,
    Untested,
    activation_test_claim,
    activation_test_finish,
    activation_test_put_off,
)
from portal.vll.operations.paths import ROUND_TRIPS_EVERY, largest_frame, path_probe_claim, path_probe_finish
from portal.vll.path_status import path_lines_on
from provisioning.agent_client import AgentClient, Refused, Unreachable, agent_of
from provisioning.agent_reply_decoder import FramesSent
from provisioning.convergence import Clock

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


@contextmanager
def frames_probe(routers: Mapping[str, Router], *, vll: UUID, revision: int) -> Iterator["FramesProbe"]:
    """Connect to the agents of both routers, given by side, and return a probe of this line or path."""
    with ExitStack() as conversations:
        ends = {
            side: End(conversations.enter_context(agent_of(router)), vll, side, revision)
            for side, router in routers.items()
        }
        yield FramesProbe(ends=ends, rate_pps=rate_pps(routers.values()))


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


log = logging.getLogger(__name__)

CANNOT = "urn:longline:error:cannot-test"


def activation_test(test_id: UUID, *, now: Clock = clock.now) -> bool:
    """Send the test's frames and store the counts; return False if there is nothing to do.

    A test that cannot be carried out now is retried later. It ends if a router does not support it.
    """
    test = activation_test_claim(test_id, now=now())
    if test is None:
        return False
    ends = {end.side: end for end in test.vll.ends.select_related("port__router")}
    try:
        tested = _carry_out(test, ends)
    except NotSent as error:
        log.warning(
            "activation test", extra={"vll": str(test.vll_id), "side": error.side, "error": str(error)}
        )
        if isinstance(error.outcome, Refused) and error.outcome.type == CANNOT:
            why_not = Untested(ActivationTest.Reason.ROUTER_CANNOT, (ends[error.side].port.router.name,))
            activation_test_finish(test, Tested(None, why_not), now=now())
        else:
            activation_test_put_off(test, now=now())
        return True
    except Exception:
        activation_test_put_off(test, now=now())
        raise
    activation_test_finish(test, tested, now=now())
    return True


def _carry_out(test: ActivationTest, ends: dict[str, VllEnd]) -> Tested:
    by_side = {side: end.port.router for side, end in ends.items()}
    with frames_probe(by_side, vll=test.vll_id, revision=test.vll.revision) as probe:
        findings = run(probe, largest=test.frame)
        routers = {
            side: {
                "router": end.port.router.name,
                "port": end.port.interface,
                "vpp": probe.responses[side].vpp_version,
                "agent": probe.responses[side].agent_version,
            }
            for side, end in ends.items()
        }
        round_trip_us = _round_trip(probe.ends["a"], test) if findings.largest_passed else None
    path = path_assumed(test.vll, by_side["a"], by_side["z"])
    conditions = {"routers": routers, "transport": test.vll.transport, "path": path}
    return Tested(findings, conditions=conditions, round_trip_us=round_trip_us)


def rate_pps(routers: Iterable[Router]) -> int:
    """Return the packet rate that both routers allow, in packet/s."""
    return min(router.line_test_pps or settings.LONGLINE_LINE_TEST_PPS for router in routers)


def _round_trip(end: End, test: ActivationTest) -> dict[str, int] | None:
    """Return the round-trip times of small packets, in µs.

    Return None if no packet returned or the agent did not measure. This is no fault of the line, because test
    frames have passed.
    """
    timed = end.agent.measure_round_trips(vll=end.vll, side=end.side, revision=end.revision)
    if isinstance(timed, Refused | Unreachable):
        log.warning("round trips", extra={"vll": str(test.vll_id), "error": str(timed)})
        return None
    if not timed.received:
        return None
    return {
        "sent": timed.sent,
        "received": timed.received,
        "min": timed.min_us,
        "avg": timed.avg_us,
        "max": timed.max_us,
    }


# The number of frames of each size in a probe of a path.
_PROBE_COUNT = 10


def path_probe(path_id: UUID, *, now: Clock = clock.now) -> bool:
    """Send small frames and the largest frames in use over a path, in both directions.

    Return False if there is nothing to do. Frames that could not be sent are retried after the claim.
    """
    path = path_probe_claim(path_id, now=now())
    if path is None:
        return False
    routers = {"a": path.a_router, "z": path.z_router}
    with frames_probe(routers, vll=path.pk, revision=path.probe_revision) as probe:
        try:
            # One warm-up round is enough. If a path carries no frames at all, other alarms report it. Many
            # such paths must not delay the probes of the other paths.
            largest = largest_frame(path)
            findings = run(probe, largest=largest, sizes=SIZES[:1], count=_PROBE_COUNT, warm_up_rounds=1)
        except NotSent as error:
            log.warning(
                "probe",
                extra={"path": str(path), "router": path.router(error.side).name, "error": str(error)},
            )
            return True
    path_probe_finish(path, findings, now=now())
    return True


def measuring_routers(*, now: datetime) -> list[int]:
    """Return the routers that are to measure now: for each due path one of its two routers.

    The path's first router measures, or the second if the first cannot. A router can measure if its agent has
    reported recently and is connected to VPP. A path is left out if neither of its routers can measure.
    """
    reporting = _reporting_routers(now)
    due = _due(now).values_list("a_router", "z_router")
    return sorted({router for a, z in due if (router := _measuring_router(a, z, reporting)) is not None})


def round_trips_measure(router_id: int, *, now: Clock = clock.now) -> int:
    """Measure the due paths of this router; return the number of measured paths.

    If a worker dies meanwhile, the measurement of one minute is missing. Later measurements are not affected.
    """
    reporting = _reporting_routers(now())
    paths = [
        path
        for path in _due(now()).filter(Q(a_router=router_id) | Q(z_router=router_id))
        if _measuring_router(path.a_router_id, path.z_router_id, reporting) == router_id
    ]
    if not paths:
        return 0
    router = Router.objects.select_related("observed").get(pk=router_id)
    lines = path_lines_on(router_id, paths)
    measured = 0
    with agent_of(router) as agent:
        for path in paths:
            line = lines.get((path.a_router_id, path.z_router_id, path.family))
            if not _claim(path, now()) or line is None:
                continue
            timed = agent.measure_round_trips(vll=line.vll, side=line.side, revision=line.revision)
            if isinstance(timed, Refused):
                log.info("round trips", extra={"router": router.name, "path": str(path), "error": timed.type})
                continue
            if isinstance(timed, Unreachable):
                log.warning("round trips", extra={"router": router.name, "error": timed.error})
                break
            times = RoundTripTimes(
                sent=timed.sent,
                received=timed.received,
                min_us=timed.min_us,
                mean_us=timed.avg_us,
                max_us=timed.max_us,
                simulated=router.observed.simulated,
            )
            round_trips_store(path=path.pk, times=times, due=path.round_trips_due_at, now=now())
            measured += 1
    return measured


def _due(now: datetime) -> QuerySet[TunnelPath]:
    paths = TunnelPath.objects.filter(in_use=True, round_trips_due_at__lte=now)
    return paths.select_related("a_router", "z_router").order_by("pk")


def _reporting_routers(now: datetime) -> set[int]:
    reporting = ObservedRouter.objects.filter(reported_at__gte=now - FRESH, vpp_connected=True)
    return set(reporting.exclude(router__agent_url="").values_list("router_id", flat=True))


def _measuring_router(a: int, z: int, reporting: set[int]) -> int | None:
    return a if a in reporting else z if z in reporting else None


def _claim(path: TunnelPath, now: datetime) -> bool:
    """Claim this measurement and schedule the next one; return whether the claim succeeded."""
    late = (now - path.round_trips_due_at) // ROUND_TRIPS_EVERY
    following = path.round_trips_due_at + ROUND_TRIPS_EVERY * (late + 1)
    mine = TunnelPath.objects.filter(pk=path.pk, round_trips_due_at=path.round_trips_due_at)
    return bool(mine.update(round_trips_due_at=following))
