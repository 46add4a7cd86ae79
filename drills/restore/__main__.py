"""Run the drill and print one line per step: `python -m drills.restore [LINES]`.

The exit code is 0 if all promises are kept.
"""

import sys
import time
from contextlib import ExitStack

from devstack.release_code import code_here
from drills.checks.customer import Customer, Json
from drills.restore.from_dump import from_dump
from drills.restore.installation import Installation, installation
from drills.restore.ordering import Noted
from drills.restore.seeded_lines import lines_seed, seeded_digest
from drills.restore.steps import Steps
from drills.restore.to_a_moment import to_a_moment

LINES = 100_000
# For each of two customers, the number of lines that the routers carry before the first backup.
DAIRY, PRESS = 60, 12
# Creates the partitions for counters of the lines. The portal creates them once an hour.
_PARTITIONS = """
from portal.core.clock import now
from portal.telemetry.partitioned_tables import partitions_keep
partitions_keep(now=now())
"""


def main(lines: int) -> int:
    print(f"# {code_here()}", flush=True)
    steps = Steps()
    with installation() as at, ExitStack() as until:
        with steps.step("seed") as step:
            at.stack.portal.manage("shell", "--no-imports", "--command", _PARTITIONS)
            lines_seed(at.database_url, lines)
            step.found = f"{seeded_digest(at.database_url)[0]} lines in service, written into the tables"
        with steps.step("carry") as step:
            dairy = _ordered(
                at, at.dairy, [body for pair in at.pairs for body in pair.orders(DAIRY // len(at.pairs))]
            )
            press = _ordered(at, at.press, at.press_pair.orders(PRESS))
            step.found = f"{len(dairy) + len(press)} lines of two customers, in service on two routers"
        from_dump(steps, at, dairy, until)
        to_a_moment(steps, at, press, until)
    print(f"restore end {len(steps.broken)} promises broken", flush=True)
    return 1 if steps.broken else 0


def _ordered(at: Installation, customer: Customer, bodies: list[Json]) -> list[Noted]:
    responses = customer.post_all(bodies, at_once=4)
    assert [each.status for each in responses] == [202] * len(bodies), [each.body for each in responses]
    with at.checker() as checker:
        checker.require_completed([each.order for each in responses], within_s=600)
    return [Noted(each.vll, each.order, time.time(), time.time()) for each in responses]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else LINES))
