"""`python -m drills.chaos SEED SECONDS`: a storm, and a line of what came of it; 1 if something is wrong."""

import sys

from devstack.client import NotReached
from devstack.process import ChildFailed
from drills.chaos.cables import HaproxyMissing
from drills.chaos.plan import make_plan
from drills.chaos.routers import CannotRun
from drills.chaos.run import run


def main(arguments: list[str]) -> int:
    seed, seconds = int(arguments[0]), float(arguments[1])
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
