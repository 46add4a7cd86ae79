"""Test frames through the probes between routers, to find black holes before customers do."""

import logging
from contextlib import ExitStack
from uuid import UUID

from portal.core import clock
from portal.vll.activation_test_procedure import SIZES, run
from portal.vll.operations.path_probes import largest_frame, path_probe_claim, path_probe_finish
from provisioning.activation_test_frames import End, FramesProbe, NotSent
from provisioning.activation_test_job import rate_pps
from provisioning.converge_job import Clock, agent_of

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
    with ExitStack() as conversations:
        probe = FramesProbe(
            ends={
                side: End(
                    conversations.enter_context(agent_of(path.router(side))),
                    path.pk,
                    side,
                    path.probe_revision,
                )
                for side in "az"
            },
            rate_pps=rate_pps([path.a_router, path.z_router]),
        )
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
