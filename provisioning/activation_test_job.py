"""Execution of an activation test: frames in both directions, by the agents of both routers."""

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from uuid import UUID

from django.conf import settings

from portal.core import clock
from portal.inventory.models import Router
from portal.vll.activation_test_procedure import run
from portal.vll.activation_test_rules import Untested
from portal.vll.line_mtu_check import path_assumed
from portal.vll.models import ActivationTest, VllEnd
from portal.vll.operations.activation_test_lifecycle import (
    Tested,
    activation_test_claim,
    activation_test_finish,
    activation_test_put_off,
)
from provisioning.activation_test_frames import End, FramesProbe, NotSent
from provisioning.agent_client import Refused, Unreachable
from provisioning.converge_job import Clock, agent_of

log = logging.getLogger(__name__)

CANNOT = "urn:longline:error:cannot-test"


def activation_test(test_id: UUID, *, now: Clock = clock.now) -> bool:
    """Send the test's frames and store the counts; return False if there is nothing to do.

    A test that cannot be carried out now is retried later. If a router does not support the test, the test
    ends.
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
    with ExitStack() as conversations:
        probe = FramesProbe(
            ends={
                side: End(
                    conversations.enter_context(agent_of(end.port.router)),
                    test.vll_id,
                    side,
                    test.vll.revision,
                )
                for side, end in ends.items()
            },
            rate_pps=rate_pps(end.port.router for end in ends.values()),
        )
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
    path = path_assumed(test.vll, ends["a"].port.router, ends["z"].port.router)
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
