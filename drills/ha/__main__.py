"""Run the reference deployment and measure how its failures affect orders: `python -m drills.ha`."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from devstack.folders import ROOT, RUN
from devstack.release_code import code_here, code_of
from devstack.routers import netns
from drills.ha.agents import start_agents
from drills.ha.bring_up import running
from drills.ha.cluster import PAIRS, Cluster, NotReady
from drills.ha.customers import Customers, Pair, Tally
from drills.ha.faults import FAULTS, UPGRADE
from drills.ha.reporters import Reporting
from drills.ha.verdict import Verdict, bookings, flaws, longest_gap_s, lost_orders, lost_reports, still_open

# The maximum time without an accepted order: 30 s if the primary dies or is isolated, 5 s for all other
# faults.
GOALS_S = {"primary-killed": 30.0, "primary-cut-off": 30.0}
GOAL_S = 5.0
WITHOUT_FAILURES = {"rolling-restart", UPGRADE}
_WARM_UP_S = 15
_AT_LAST_S = 120


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m drills.ha", description=__doc__)
    parser.add_argument(
        "--drills",
        default=",".join(name for name in FAULTS if name != UPGRADE),
        help="names, separated by commas",
    )
    parser.add_argument(
        "--upgrade-from",
        default="",
        help=f"tag or commit that {UPGRADE} begins with",
    )
    parser.add_argument("--orders-per-s", type=float, default=20.0)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument(
        "--agents", type=int, default=100, help="how many routers report, the two with lines among them"
    )
    parser.add_argument("--calm-s", type=float, default=8.0, help="of load before each fault")
    parser.add_argument("--seconds", type=float, default=25.0, help="of load after each fault, at least")
    options = parser.parse_args(arguments)
    names = [name for name in options.drills.split(",") if name]
    if unknown := set(names) - set(FAULTS):
        print(f"no such drills: {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}", file=sys.stderr)
        return 2
    if (UPGRADE in names) != bool(options.upgrade_from):
        print(f"{UPGRADE} takes --upgrade-from, and nothing else does", file=sys.stderr)
        return 2
    # The upgrade must come first, because it begins with the earlier release.
    names.sort(key=lambda name: name != UPGRADE)
    if os.geteuid() != 0:
        print("drills make machines of namespaces, which needs root", file=sys.stderr)
        return 2
    netns.enter("drills.ha", arguments, "net")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    logs = RUN / "ha" / "log"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    # The folder is on a disk, because the duration of fsync matters here. The accounts of all programs may
    # enter the folder.
    folder = Path(tempfile.mkdtemp(prefix="longline-ha-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        return _drill(options, names, folder, logs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _drill(options: argparse.Namespace, names: list[str], folder: Path, logs: Path) -> int:
    upgraded = f", upgraded from {options.upgrade_from}" if options.upgrade_from else ""
    print(f"# {code_here()}{upgraded}", flush=True)
    settings = {
        # One client sends the requests of many customers.
        "LONGLINE_API_WRITES_PER_MIN": "0",
        "LONGLINE_API_READS_PER_MIN": "0",
        # All lines are on two routers, which could not run so many activation tests per second.
        "LONGLINE_LINE_TEST": "off",
    }
    missed = 0
    began = time.monotonic()
    code = code_of(options.upgrade_from) if options.upgrade_from else ROOT
    with running(
        folder=folder, logs=logs, synthetic=max(0, options.agents - 2), settings=settings, code=code
    ) as cluster:
        print(f"# all of it is up after {time.monotonic() - began:.0f} s", flush=True)
        start_agents(cluster)
        cluster.known_flaws = set(bookings(cluster))
        pairs = [Pair(cluster, number) for number in range(1, PAIRS + 1)]
        with Reporting(cluster) as reporting:
            with Customers(cluster, pairs, orders_per_s=options.orders_per_s, readers=options.readers):
                # Give the processes time to load the code for orders, and PostgreSQL time to load its tables.
                time.sleep(_WARM_UP_S)
            for name in names:
                verdict = _one(cluster, pairs, reporting, name, options)
                print(verdict, flush=True)
                for note in verdict.notes:
                    print(f"# {name}: {note}", flush=True)
                for wrong in verdict.wrong:
                    print(f"# {name}: MISSED: {wrong}", flush=True)
                missed += bool(verdict.wrong)
            late = still_open(cluster)
            print(
                f"# in the end: {len(late)} orders are open, {reporting.waiting()} reports wait", flush=True
            )
            for order in late[:3]:
                print(f"# MISSED: {order}", flush=True)
    return 1 if missed or late else 0


def _one(
    cluster: Cluster, pairs: list[Pair], reporting: Reporting, name: str, options: argparse.Namespace
) -> Verdict:
    cluster.wait_until_whole()
    reports_before, refusals_before = reporting.taken(), reporting.failures()
    with Customers(cluster, pairs, orders_per_s=options.orders_per_s, readers=options.readers) as customers:
        time.sleep(options.calm_s)
        began = time.monotonic()
        with FAULTS[name](cluster) as whom:
            struck_s = time.monotonic() - began
            time.sleep(options.seconds)
            _wait_for_an_order(customers.tally)
            ended = time.monotonic()
        customers.stop()
    unmended: list[str] = []
    try:
        cluster.wait_until_whole()
    except NotReady as problem:
        unmended.append(f"afterwards {problem}")
    tally = customers.tally
    taken = reporting.taken() - reports_before
    verdict = Verdict(
        name=name,
        accepted=len(tally.accepted),
        lost=len(lost_orders(cluster, tally)),
        failed_requests=len(tally.failed),
        longest_gap_s=longest_gap_s(tally.accepted, began - options.calm_s / 2, ended),
        reports_taken=len(taken),
        reports_lost=lost_reports(cluster, taken),
        wrong=[*flaws(cluster, tally), *unmended],
    )
    per_s = sum(began <= each.at <= ended for each in tally.accepted) / (ended - began)
    verdict.notes = [
        f"{whom}; then {per_s:.1f} orders/s for {ended - began:.0f} s (struck in {struck_s:.1f} s),"
        f" {tally.reads} reads; {verdict.reports_taken} reports taken, {verdict.reports_lost} lost,"
        f" {reporting.waiting()} waiting, {reporting.failures() - refusals_before} tried again",
        *(f"failed: {what} {outcome}" for _, what, outcome in tally.failed[:3]),
    ]
    goal_s = GOALS_S.get(name, GOAL_S)
    if verdict.longest_gap_s > goal_s:
        verdict.wrong.append(
            f"no order was accepted for {verdict.longest_gap_s:.1f} s, the goal is {goal_s:.0f} s"
        )
    if verdict.lost:
        verdict.wrong.append(f"{verdict.lost} accepted orders do not exist")
    if verdict.reports_lost:
        verdict.wrong.append(f"{verdict.reports_lost} confirmed reports do not exist")
    if name in WITHOUT_FAILURES and tally.failed:
        verdict.wrong.append(f"{len(tally.failed)} requests failed, the goal is none")
    verdict.wrong += [f"an order was refused: {each}" for each in tally.refused[:3]]
    return verdict


def _wait_for_an_order(tally: Tally) -> None:
    """Wait until one more order is accepted. The length of the current gap is not known before that order."""
    already, deadline = len(tally.accepted), time.monotonic() + _AT_LAST_S
    while len(tally.accepted) == already and time.monotonic() < deadline:
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
