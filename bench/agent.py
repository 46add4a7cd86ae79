"""The time that the agent needs for 1,000 VLLs, and how long it blocks VPP. build/agentbench
measures both.
"""

import subprocess
from collections.abc import Iterator

from bench.figures import Figure
from bench.sizes import SMALLEST
from devstack.folders import BUILD

# With this number of VLL ends, a single read once blocked VPP's main thread for 460 ms.
MAIN_THREAD = ["-main-thread", "-vlls", "11700"]


def measure() -> Iterator[Figure]:
    """Measure with a real VPP if one is installed, otherwise with the stand-in. The note has its version."""
    yield from _printed(["-vlls", "20", "-rounds", "1", "-full-router", "20"] if SMALLEST else [])
    yield from _printed(["-main-thread", "-vlls", "20", "-rounds", "1"] if SMALLEST else MAIN_THREAD)


def _printed(options: list[str]) -> Iterator[Figure]:
    command = [str(BUILD / "agentbench"), *options]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in printed.splitlines():
        match line.split(maxsplit=4):
            case ["bench", name, value, unit, *note]:
                yield Figure(name, float(value), unit, " ".join(note))
