"""The whole product as processes, for tests that go through its doors."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack import stack
from devstack.isp import small_isp
from devstack.paths import BUILD
from devstack.process import Family
from devstack.vppsim import SimulatedDataplane


@pytest.fixture(scope="package")
def live_stack() -> Iterator[stack.Stack]:
    """The small ISP on stand-in VPPs, on services of its own; agents report every second.

    For this folder only, as every installation of the tests: one that is left running takes its share of the
    processors from all that come after.
    """
    for name in ("longline-agent", "vppsim"):
        if not (BUILD / name).exists():
            pytest.fail(f"{BUILD / name} is missing: run `make agent` first")
    isp, family = small_isp(), Family()
    # Short, because a Unix socket's path holds 107 bytes.
    with tempfile.TemporaryDirectory(prefix="ll-live-") as name:
        folder = Path(name)
        # The database's own account has to get through to its cluster.
        folder.chmod(0o711)
        logs = folder / "log"
        dataplane = SimulatedDataplane(isp=isp, folder=folder / "vppsim", logs=logs, family=family)
        with stack.running(
            folder=folder,
            logs=logs,
            isp=isp,
            dataplane=dataplane,
            family=family,
            report_interval_s=1,
            durable=False,
        ) as running:
            stack.wait_for_reports(running)
            yield running
