"""The agent's time for 1,000 VLLs: measured by build/agentbench, beside the engine itself."""

import subprocess
from collections.abc import Iterator

from bench.figures import Figure
from bench.sizes import SMALLEST
from devstack.folders import BUILD


def measure() -> Iterator[Figure]:
    """A real VPP where one is installed, else the stand-in; the note is its version."""
    size = ["-vlls", "20", "-rounds", "1", "-full-router", "20"] if SMALLEST else []
    command = [str(BUILD / "agentbench"), *size]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in printed.splitlines():
        match line.split(maxsplit=4):
            case ["bench", name, value, unit, *note]:
                yield Figure(name, float(value), unit, " ".join(note))
