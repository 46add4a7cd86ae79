"""The CPU time of this process and its descendants. Unlike elapsed time, it does not depend on other load."""

import os
import time
from collections import defaultdict
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s() -> float:
    """Return the CPU seconds (user and system) of this process and of its descendants (proc(5)).

    A process that has ended is counted after its parent has waited for it. PostgreSQL waits for its vacuum
    workers.
    """
    children: dict[int, list[int]] = defaultdict(list)
    spent: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process ended in the meantime
        pid = int(stat.parent.name)
        children[int(fields[1])].append(pid)
        spent[pid] = sum(map(int, fields[11:15])) / _TICKS_PER_S
    ended = os.times()
    family = list(children[os.getpid()])
    sum_s = time.process_time() + ended.children_user + ended.children_system
    while family:
        pid = family.pop()
        family += children[pid]
        sum_s += spent[pid]
    return sum_s
