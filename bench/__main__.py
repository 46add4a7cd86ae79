"""Runs the benchmarks named on the command line, or all of them: `python -m bench vni_leases mtu`.

A line that begins with # says under which circumstances the figure above it was taken.
"""

import sys

from bench import agent, mtu, order_to_frames, telemetry, vni_leases

BENCHMARKS = {
    "telemetry": telemetry.measure,
    "agent": agent.measure,
    "vni_leases": vni_leases.measure,
    "mtu": mtu.measure,
    "order_to_frames": order_to_frames.measure,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        for figure in BENCHMARKS[name]():
            print(figure, flush=True)
            if figure.note:
                print(f"# {figure.name}: {figure.note}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
