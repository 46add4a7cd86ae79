"""Every benchmark with its smallest size: it still measures the quantity in its name."""

import os
import subprocess
import sys

import pytest

from bench.__main__ import BENCHMARKS
from devstack.folders import ROOT
from devstack.routers import netns, vpp

# These figures need packets of a real VPP, so they are absent.
_ON_A_REAL_VPP = {"encapsulations", "order_to_frames", "liveness"}


# Each benchmark starts its own services, so that all of them take minutes.
@pytest.mark.release
@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_runs_with_its_smallest_size(name: str) -> None:
    if name in _ON_A_REAL_VPP and (reason := netns.why_unusable()):
        pytest.skip(reason)
    done = subprocess.run(
        [sys.executable, "-m", "bench", name],
        cwd=ROOT,
        env=os.environ | {"BENCH_SIZE": "smallest"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    values = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("bench ")]
    assert values, done.stdout + done.stderr
    if name not in _ON_A_REAL_VPP or _has_vpp():
        assert "absent" not in values, done.stdout


def _has_vpp() -> bool:
    try:
        vpp.find()
    except vpp.NotInstalled:
        return False
    return True
