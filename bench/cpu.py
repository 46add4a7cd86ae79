"""CPU time of this process and of all that it started: what a figure costs on however busy a machine."""

import os
import time
from collections import defaultdict
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s() -> float:
    """Seconds, user and system, of this process and of its descendants that are still there (proc(5))."""
    children: dict[int, list[int]] = defaultdict(list)
    spent: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # gone in the meantime
        pid = int(stat.parent.name)
        children[int(fields[1])].append(pid)
        spent[pid] = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    family, sum_s = list(children[os.getpid()]), time.process_time()
    while family:
        pid = family.pop()
        family += children[pid]
        sum_s += spent[pid]
    return sum_s
