"""Runs the benchmarks named on the command line, or all of them: `python -m bench vni_leases mtu`.

A line that begins with # says under which circumstances the figure above it was taken.
"""

import subprocess
import sys

from bench import (
    agent,
    alarms,
    broker_away,
    discovery,
    encapsulations,
    imports,
    lists,
    live_streams,
    liveness,
    mtu,
    order_to_frames,
    orders,
    pages,
    reports,
    telemetry,
    validate,
    vni_leases,
)

BENCHMARKS = {
    "telemetry": telemetry.measure,
    "reports": reports.measure,
    "agent": agent.measure,
    "alarms": alarms.measure,
    "encapsulations": encapsulations.measure,
    "vni_leases": vni_leases.measure,
    "mtu": mtu.measure,
    "lists": lists.measure,
    "pages": pages.measure,
    "validate": validate.measure,
    "orders": orders.measure,
    "imports": imports.measure,
    "broker_away": broker_away.measure,
    "discovery": discovery.measure,
    "order_to_frames": order_to_frames.measure,
    "liveness": liveness.measure,
    "sse": live_streams.measure,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    if len(names) != 1:
        # A process for each: Django reads its settings once, and each benchmark has a database of its own.
        return max(_alone(name) for name in names or BENCHMARKS)
    for name in names:
        for figure in BENCHMARKS[name]():
            print(figure, flush=True)
            if figure.note:
                print(f"# {figure.name}: {figure.note}", flush=True)
    return 0


def _alone(name: str) -> int:
    return subprocess.run([sys.executable, "-m", "bench", name], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
