"""A backup with pg_dump under load. Then cluster and CA are destroyed and restored in another place."""

import shutil
import subprocess
import time
from contextlib import ExitStack

from devstack.databases import postgres
from devstack.process import free_ports
from drills.restore.after_restore import (
    Expected,
    database_check,
    new_order_check,
    portal_start,
    promises_check,
    quarantine_list,
    reconcile,
)
from drills.restore.dump import analyze, dump, restore
from drills.restore.installation import Installation
from drills.restore.ordering import Noted, ordering
from drills.restore.seeded_lines import seeded_digest
from drills.restore.steps import Steps
from drills.restore.take_back import take_back

ORDERS_PER_S = 1.0
BEFORE_S, SINCE_S = 5, 30
# After the backup, the customer removes REMOVED lines. The restored database wants these lines again. Before
# the NOC reconciles, it removes all except LEFT of these lines.
REMOVED, LEFT = 6, 2
_SIZE = "SELECT pg_size_pretty(pg_database_size(current_database()))"


def from_dump(steps: Steps, at: Installation, carried: list[Noted], until: ExitStack) -> None:
    """Run the steps.

    ``carried``: the orders whose lines exist before the drill takes the backup. The restored cluster is
    stopped when ``until`` closes.
    """
    kept_for_later = carried[:REMOVED]
    backup = at.folder / "backup"
    backup.mkdir(mode=0o700)
    seeded = seeded_digest(at.database_url)
    with ordering(at.dairy, at.pairs, per_s=ORDERS_PER_S) as orders:
        time.sleep(BEFORE_S)
        with steps.step("backup") as step:
            began = time.time()
            dump(at.database_url, backup / "longline.dump")
            dumped = time.time()
            _tar("-cf", str(backup / "pki.tar"), "-C", str(at.stack.portal.folder), "pki")
            size = (backup / "longline.dump").stat().st_size / 1e6
            with at.checker() as checker:
                [(whole,)] = checker.sql(_SIZE)
            summary = orders.summary_between(began, dumped)
            step.found = f"pg_dump {dumped - began:.1f} s, {size:.0f} MB of a database of {whole}; {summary}"
        with steps.step("destroy") as step:
            removals = [at.dairy.remove(each.vll) for each in kept_for_later]
            with at.checker() as checker:
                checker.require_completed(removals, within_s=60)
            time.sleep(SINCE_S)
            in_service = at.lines_in_service()
            lost_at = time.time()
            at.database.child.end()
            step.require(
                not orders.refused_before(lost_at),
                f"orders were refused: {orders.refused_before(lost_at)[:3]}",
            )
            step.found = (
                f"{REMOVED} lines removed since the backup; then PostgreSQL killed in the middle of orders,"
                " cluster and CA deleted"
            )
    at.processes_stop()
    shutil.rmtree((at.folder / "postgres").resolve() / "cluster")
    shutil.rmtree(at.stack.portal.pki)
    expected = Expected(
        configs=at.configs(),
        kept=[*carried, *orders.before(began)],
        later=[each for each in orders.accepted if each.accepted_at >= began],
        removed={each.vll for each in kept_for_later},
        seeded=seeded,
        lost_at=lost_at,
        in_service=in_service,
    )
    with steps.step("database") as step:
        [port] = free_ports(1)
        elsewhere = until.enter_context(
            postgres.running(
                folder=at.folder / "elsewhere",
                log=at.logs / "postgres-elsewhere.log",
                port=port,
                durable=True,
            )
        )
        began_at = time.monotonic()
        restore(elsewhere.url, backup / "longline.dump")
        restored = time.monotonic()
        analyze(elsewhere.url)
        _tar("-xf", str(backup / "pki.tar"), "-C", str(at.stack.portal.folder))
        at.stack.portal.use_database(elsewhere)
        step.found = (
            f"on another cluster: pg_restore {restored - began_at:.1f} s, vacuumdb --analyze-only"
            f" {time.monotonic() - restored:.1f} s; the CA is back"
        )
    database_check(steps, at, expected)
    portal_start(steps, at)
    quarantine_list(steps, at, expected)
    with steps.step("remove") as step:
        again = [each.vll for each in kept_for_later[:-LEFT]]
        for vll in again:
            at.dairy.remove(vll)
        step.found = (
            f"{len(again)} of the {REMOVED} lines that are wanted again are removed before the reconciliation"
        )
    reconcile(steps, at)
    promises_check(steps, at, expected, taken_away=set(again))
    take_back(steps, at)
    new_order_check(steps, at, 0)


def _tar(*arguments: str) -> None:
    subprocess.run(["tar", *arguments], check=True)
