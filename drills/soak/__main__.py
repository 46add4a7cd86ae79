"""Run the product under a steady load and print the slopes of its figures: `python -m drills.soak MINUTES`.

Each figure is one line: `soak <name> mean <x> slope <s> error <e> <unit>/h`. If the rise is certain, `rises`
follows. A person has to investigate rising figures. The exit code is 1 if an order failed or a process died.

Ctrl-C or SIGTERM ends the soak early and prints the slopes of the measurements so far. After a SIGKILL,
`python -m drills.soak --read FILE` prints the slopes from the saved readings.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from devstack import stack
from devstack.databases.postgres import migrated_cluster
from devstack.folders import RUN
from devstack.process import Child, ChildFailed, Family
from devstack.release_code import code_here
from drills.chaos.routers import routers
from drills.soak.gauges import Reading, of_process, of_services
from drills.soak.load import Load
from drills.soak.readings import Series, readings_add, series_in
from drills.soak.slopes import slope

# This fraction of the duration, at the beginning, is not evaluated: caches fill and workers load code.
WARM_UP = 0.25
READINGS = 240
REPORT_INTERVAL_S = 1
FEWEST = 10
FOLDER = RUN / "soak"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m drills.soak", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("minutes", nargs="?", type=float)
    what.add_argument("--read", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.read:
        if not options.read.is_file():
            parser.error(f"no soak has left readings at {options.read}")
        _print(series_in(options.read))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return soak(options.minutes * 60)


def soak(seconds: float) -> int:
    """Run the soak and return the exit code."""
    print(f"# {code_here()}", flush=True)
    logs, readings = FOLDER / "log", FOLDER / "readings.csv"
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
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
            measured_s = _measure(running, load, seconds, readings)
        except ChildFailed as death:
            print(f"soak wrong: {death}")
            return 1
        finally:
            load.stop()
        for sentence in load.failures:
            print(f"soak wrong: {sentence}")
        _print(series_in(readings))
        print(
            f"soak minutes {measured_s / 60:.4g} orders {load.orders} wrong {len(load.failures)}"
            f" # {net.dataplane.name}"
        )
        return 1 if load.failures else 0


def _measure(running: stack.Stack, load: Load, seconds: float, readings: Path) -> float:
    """Measure for this number of seconds or until a signal. Return the actual duration in seconds. Raises
    ChildFailed.
    """
    began, every_s = time.monotonic(), max(2.0, seconds / READINGS)
    with readings.open("w") as file:
        try:
            while (at := time.monotonic() - began) < seconds:
                running.family.raise_if_dead()
                readings_add(file, at, _readings(running, load))
                time.sleep(every_s)
        except KeyboardInterrupt:
            print("soak ended early", flush=True)
    return time.monotonic() - began


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


def _print(series: Series) -> None:
    last = max((at for measured in series.values() for at, _value in measured), default=0)
    for (name, unit), measured in sorted(series.items()):
        warm = [(at, value) for at, value in measured if at >= WARM_UP * last]
        if len(warm) < FEWEST:
            continue
        found = slope(*zip(*warm, strict=True))
        if found.mean or found.per_hour:
            mark = " rises" if found.rises else ""
            per_hour = f"slope {found.per_hour:.3g} error {found.error:.2g} {unit}/h"
            print(f"soak {name} mean {found.mean:.4g} {per_hour}{mark}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
