"""An underlay that carries test frames up to a size, and the steps of an activation test through it."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, Self

from portal.celery_tasks import TEST_LINE
from portal.core import clock
from portal.events.models import Event
from portal.vll.models import ActivationTest, Vll
from provisioning.agent_client import Refused, Unreachable
from provisioning.agent_reply_decoder import FramesSent, RoundTrips, TunnelCounters
from provisioning.frame_tests import activation_test
from provisioning.intent_generations import router_intent
from tests.integration.isp import Isp
from tests.integration.requested_tasks import requested
from tests.integration.router_answers import answer


class Underlay:
    """An underlay that carries test frames of up to ``largest`` bytes from one router to the other."""

    def __init__(self) -> None:
        self.largest = 65535
        self.received: dict[str, int] = {"a": 0, "z": 0}
        self.pieces = 0
        self.outcome: Refused | Unreachable | None = None
        # The result for round trips where no router measures them.
        self.silent: Refused | Unreachable | None = None
        self.requests: list[dict[str, Any]] = []

    def agent_of(self, router: Any) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def plan(self, document: bytes, *, request_ids: Any = ()) -> Unreachable:
        return Unreachable("no test here requests a plan")

    def measure_round_trips(self, *, vll: Any, side: Literal["a", "z"], revision: int) -> Any:
        if self.silent:
            return self.silent
        times = {"sent": 5, "received": 4, "min_us": 710, "avg_us": 805, "max_us": 1200}
        return RoundTrips(schema=1, router="", vll=vll, end=side, revision=revision, **times)

    def send_test_frames(
        self, *, vll: Any, side: Literal["a", "z"], revision: int, frame: int, count: int, rate_pps: int
    ) -> FramesSent | Refused | Unreachable:
        self.requests.append(
            {"side": side, "revision": revision, "frame": frame, "count": count, "rate_pps": rate_pps}
        )
        if self.outcome is not None:
            return self.outcome
        if frame <= self.largest:
            self.received["z" if side == "a" else "a"] += count
        counters = TunnelCounters(
            at_ms=0, rx_packets=self.received[side], tx_packets=0, fragmented=self.pieces, reassembled=0
        )
        return FramesSent(
            schema=1,
            router="",
            vll=vll,
            end=side,
            revision=revision,
            sent=count,
            counters=counters,
            vpp_version="25.10",
            agent_version="0.1.0",
        )


def built(vll: Vll) -> None:
    """Let both routers report the tunnel, not joined to the attachment circuits."""
    answer(vll, "a", "testing")
    answer(vll, "z", "testing")
    vll.refresh_from_db()


def carry_out(vll: Vll, *, now: Callable[[], datetime] = clock.now) -> ActivationTest:
    [test] = vll.activation_tests.filter(state="waiting")
    activation_test(test.pk, now=now)
    test.refresh_from_db()
    vll.refresh_from_db()
    return test


def requests_for(vll: Vll) -> int:
    """Return how often the portal requested the line's waiting test from a worker."""
    [test] = vll.activation_tests.filter(state="waiting")
    return requested().count((TEST_LINE, [str(test.pk)]))


def apart(isp: Isp, router: str) -> list[bool]:
    """Return whether the intent of a router keeps its ends apart from the customer."""
    document = json.loads(router_intent(isp.routers[router], generation=1).document())
    return [end.get("testing", False) for end in document["present"]]


def event_data(kind: str) -> list[dict[str, Any]]:
    """Return the data of all events of a kind."""
    return list(Event.objects.filter(kind=kind).values_list("data", flat=True))
