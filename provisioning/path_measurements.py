"""Measurements of the paths between routers: test frames through probes, and round-trip times.

Test frames find black holes before customers do. Round-trip times are measured once a minute on each path
that lines take.
"""

import logging
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from portal.core import clock
from portal.inventory.models import FRESH, ObservedRouter, Router
from portal.telemetry.round_trips import RoundTripTimes, round_trips_store
from portal.vll.activation_test_procedure import SIZES, run
from portal.vll.models import TunnelPath
from portal.vll.operations.paths import ROUND_TRIPS_EVERY, largest_frame, path_probe_claim, path_probe_finish
from portal.vll.path_status import path_lines_on
from provisioning.activation_tests import NotSent, frames_probe
from provisioning.agent_client import Refused, Unreachable, agent_of
from provisioning.convergence import Clock

log = logging.getLogger(__name__)

COUNT = 10


def path_probe(path_id: UUID, *, now: Clock = clock.now) -> bool:
    """Send small frames and the largest frames in use over a path, in both directions.

    Return False if there is nothing to do. Frames that could not be sent are tried again when the claim has
    expired.
    """
    path = path_probe_claim(path_id, now=now())
    if path is None:
        return False
    routers = {"a": path.a_router, "z": path.z_router}
    with frames_probe(routers, vll=path.pk, revision=path.probe_revision) as probe:
        try:
            # One warm-up round is enough. If a path carries no frames at all, other alarms report it. Many
            # such paths must not delay the probes of the other paths.
            findings = run(probe, largest=largest_frame(path), sizes=SIZES[:1], count=COUNT, warm_up_rounds=1)
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
