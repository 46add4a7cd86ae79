"""Run a storm and print its result in one line: `python -m drills.chaos SEED SECONDS`.

The exit code is 1 after an error. `python -m drills.chaos failed` runs all storms of seeds.txt, one after
another.
"""

import subprocess
import sys
from pathlib import Path

from devstack.client import NotReached
from devstack.process import ChildFailed
from devstack.release_code import code_here
from devstack.routers import netns
from drills.chaos.cables import HaproxyMissing
from drills.chaos.plan import make_plan
from drills.chaos.routers import CannotRun
from drills.chaos.run import run

SEEDS = Path(__file__).with_name("seeds.txt")


def main(arguments: list[str]) -> int:
    netns.enter("drills.chaos", arguments)
    if arguments == ["failed"]:
        return max((_alone(*seed) for seed in failed_once()), default=0)
    seed, seconds = int(arguments[0]), float(arguments[1])
    print(f"# {code_here()}", flush=True)
    try:
        outcome = run(make_plan(seed, seconds))
    except (CannotRun, ChildFailed, HaproxyMissing, NotReached) as problem:
        print(f"chaos: {problem}", file=sys.stderr)
        return 2
    for sentence in outcome.wrong:
        print(f"chaos seed {seed} wrong: {sentence}")
    print(f"# {outcome.dataplane}, {seconds:g} s; the timeline and all logs: .run/chaos/seed-{seed}/")
    print(
        f"chaos seed {seed} orders {outcome.orders} accepted {outcome.accepted} faults {outcome.faults}"
        f" open_after_s {outcome.open_after_s:.1f} wrong {len(outcome.wrong)}",
        flush=True,
    )
    return 1 if outcome.wrong else 0


def failed_once() -> list[tuple[str, str]]:
    """Return the seed and the duration (seconds) of each storm that once revealed a defect."""
    rows = [line.split() for line in SEEDS.read_text().splitlines() if line and not line.startswith("#")]
    return [(seed, seconds) for seed, seconds, *_ in rows]


def _alone(seed: str, seconds: str) -> int:
    return subprocess.run([sys.executable, "-m", "drills.chaos", seed, seconds], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
