"""Run the benchmarks that the command line names, or all: `python -m bench vni_leases mtu`.

A line that begins with # states the measuring conditions of the figure above it. The last line names the
benchmarks that failed. `BENCH_SIZE=smallest` runs each benchmark with its smallest size; see `bench.sizes`.
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
        # Each benchmark runs in a separate process, because Django reads its settings only once and each
        # benchmark has a separate database.
        failed = [name for name in names or BENCHMARKS if _alone(name) != 0]
        print(f"failed: {', '.join(failed)}" if failed else "every benchmark was measured", flush=True)
        return 1 if failed else 0
    for name in names:
        for figure in BENCHMARKS[name]():
            print(figure, flush=True)
            if figure.note:
                print(f"# {figure.name}: {figure.note}", flush=True)
    return 0


def _alone(name: str) -> int:
    """Run one benchmark in a separate process. Return its exit status, which is negative after a signal."""
    return subprocess.run([sys.executable, "-m", "bench", name], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
