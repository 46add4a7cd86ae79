"""The small ISP on two real VPPs, for benchmarks that need frames."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devstack import stack
from devstack.folders import RUN
from devstack.isp import small_isp
from devstack.process import Family
from devstack.routers import netns
from devstack.routers.vpp import Installation
from devstack.routers.vpp_network import VppDataplane


@contextmanager
def real_vpps(installation: Installation) -> Iterator[tuple[stack.Stack, VppDataplane]]:
    """Run the ISP and wait until both agents have reported."""
    netns.remove_leftovers()
    isp, family, logs = small_isp(), Family(), RUN / "log" / "bench"
    with (
        tempfile.TemporaryDirectory(prefix="ll-bench-") as folder,
        VppDataplane(
            installation=installation, isp=isp, folder=Path(folder), logs=logs, family=family
        ) as dataplane,
        stack.running(
            folder=RUN / f"bench-{os.getpid()}", logs=logs, isp=isp, dataplane=dataplane, family=family
        ) as running,
    ):
        stack.wait_for_reports(running)
        yield running, dataplane
