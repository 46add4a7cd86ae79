"""The whole product as processes on stand-in VPPs, for tests that use it from outside."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devstack import stack
from devstack.databases.postgres import migrated_cluster
from devstack.folders import BUILD, ROOT
from devstack.isp import Isp
from devstack.process import Family
from devstack.routers.vppsim import SimulatedDataplane

# Tests wait for reports, but a stack that reports more often takes CPU from the other lanes of the gate.
REPORT_INTERVAL_S = 2
# Routers carry no unknown objects, removals are immediate, any rate is allowed, and a lost link is forwarded
# soon.
AS_TESTED = {
    "LONGLINE_PROBE_EVERY_S": "0",
    "LONGLINE_COOLING_OFF_S": "0",
    "LONGLINE_MIN_CIR_BPS": "1",
    "LONGLINE_LINK_LOSS_DOWN_S": "2",
    "LONGLINE_LINK_LOSS_UP_S": "2",
}


def require_built(*programs: str) -> None:
    """Fail if one of these programs is not in build/."""
    for name in programs:
        if not (BUILD / name).exists():
            pytest.fail(f"{BUILD / name} is missing: run `make agent` first")


@contextmanager
def simulated(
    isp: Isp,
    *,
    logs: Path | None = None,
    durable: bool = False,
    settings: dict[str, str] | None = None,
    live: bool = False,
    code: Path = ROOT,
) -> Iterator[stack.Stack]:
    """Yield a stack that is up and has reports of every agent. Without ``logs``, the logs are deleted.

    ``settings`` are added to ``AS_TESTED``. ``code``: see ``devstack.portal.Portal``.
    """
    require_built("longline-agent", "vppsim")
    family = Family()
    # Short, because a Unix socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ll-stack-") as name:
        folder = Path(name)
        # The database account needs to reach the cluster's folder.
        folder.chmod(0o711)
        logs = logs or folder / "log"
        dataplane = SimulatedDataplane(
            isp=isp, folder=folder / "vppsim", logs=logs, family=family, exceeds=True
        )
        with stack.running(
            folder=folder,
            logs=logs,
            isp=isp,
            dataplane=dataplane,
            family=family,
            report_interval_s=REPORT_INTERVAL_S,
            durable=durable,
            settings={**AS_TESTED, **(settings or {})},
            template=migrated_cluster(),
            live=live,
            code=code,
        ) as running:
            stack.wait_for_reports(running)
            yield running
