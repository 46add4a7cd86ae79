"""`python -m drills.soak MINUTES`: the product under a steady load, and the slope of all that could grow.

A line for each: `soak <name> mean <x> slope <s> error <e> <unit>/h`, and `rises` behind it where that is
sure. 1 where an order did not end well or a process died; what rises has to be looked at by somebody.
"""

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from devstack import stack
from devstack.migrated_cluster import migrated_cluster
from devstack.paths import RUN
from devstack.process import Child, ChildFailed, Family
from devstack.release_code import code_here
from drills.chaos.routers import routers
from drills.soak.gauges import Reading, of_process, of_services
from drills.soak.load import Load
from drills.soak.slopes import slope

# What begins is no slope: caches fill, workers load what they need. Left out, as part of the whole.
WARM_UP = 0.25
READINGS = 240
REPORT_INTERVAL_S = 1
FEWEST = 10


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) * 60
    print(f"# {code_here()}", flush=True)
    logs = RUN / "soak" / "log"
    shutil.rmtree(logs, ignore_errors=True)
    family = Family()
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ll-soak-")))
        folder.chmod(0o711)
        net = routers(family, folder=folder / "vpp", logs=logs, undo=undo)
        running = undo.enter_context(
            stack.running(
                folder=folder / "run",
                logs=logs,
                isp=net.dataplane.isp,
                dataplane=net.dataplane,
                family=family,
                report_interval_s=REPORT_INTERVAL_S,
                settings={"LONGLINE_COOLING_OFF_S": "0"},
                template=migrated_cluster(),
                live=True,
            )
        )
        stack.wait_for_reports(running)
        load = Load(running)
        load.start()
        try:
            series = _measure(running, load, seconds)
        except ChildFailed as death:
            print(f"soak wrong: {death}")
            return 1
        finally:
            load.stop()
        for sentence in load.failures:
            print(f"soak wrong: {sentence}")
        _print(series, seconds)
        print(
            f"soak minutes {seconds / 60:g} orders {load.orders} wrong {len(load.failures)}"
            f" # {net.dataplane.name}"
        )
        return 1 if load.failures else 0


def _measure(
    running: stack.Stack, load: Load, seconds: float
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Times and values by name and unit. Raises ChildFailed."""
    series = defaultdict(list)
    began, every_s = time.monotonic(), max(2.0, seconds / READINGS)
    while (at := time.monotonic() - began) < seconds:
        running.family.raise_if_dead()
        for each in _readings(running, load):
            series[each.name, each.unit].append((at, each.value))
        time.sleep(every_s)
    return series


def _readings(running: stack.Stack, load: Load) -> list[Reading]:
    services = running.portal.services
    children: dict[str, Child] = {child.name: child for child in running.family}
    children |= {"postgres": services.postgres.child, "redis": services.redis.child}
    readings = [each for name, child in children.items() for each in of_process(name, child)]
    return [
        *readings,
        *of_services(services),
        *(Reading(name, value, "ms") for name, value in load.latencies_ms().items()),
    ]


def _print(series: dict[tuple[str, str], list[tuple[float, float]]], seconds: float) -> None:
    for (name, unit), measured in sorted(series.items()):
        warm = [(at, value) for at, value in measured if at >= WARM_UP * seconds]
        if len(warm) < FEWEST:
            continue
        found = slope(*zip(*warm, strict=True))
        if found.mean or found.per_hour:
            mark = " rises" if found.rises else ""
            per_hour = f"slope {found.per_hour:.3g} error {found.error:.2g} {unit}/h"
            print(f"soak {name} mean {found.mean:.4g} {per_hour}{mark}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
