"""A base backup and archived WAL. After a mistake, the database is restored to the second before it."""

import shutil
import time
from contextlib import ExitStack
from datetime import UTC, datetime

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
from drills.restore.installation import Installation
from drills.restore.ordering import Noted, ordering
from drills.restore.router_contents import forwarding
from drills.restore.seeded_lines import seeded_digest
from drills.restore.steps import Steps
from drills.restore.wal_archive import (
    archiving_begin,
    base_backup,
    last_segment_archive,
    recovered_wait,
    recovery_prepare,
)

ORDERS_PER_S = 1.0
BEFORE_S, SINCE_S = 5, 20
RECOVERED_WITHIN_S = 600


def to_a_moment(steps: Steps, at: Installation, mistaken: list[Noted], until: ExitStack) -> None:
    """Run the steps.

    ``mistaken``: the orders of all lines of one customer; the drill removes these lines by mistake. The
    restored cluster is stopped when ``until`` closes.
    """
    wal, base = at.folder / "wal", at.folder / "base"
    with steps.step("archiving") as step:
        archiving_begin((at.folder / "elsewhere").resolve() / "cluster", at.database.child, wal)
        step.found = "archive_library = basic_archive; PostgreSQL was started again while the portal ran"
    seeded = seeded_digest(at.database_url)
    with ordering(at.dairy, at.pairs, per_s=ORDERS_PER_S) as orders:
        with steps.step("base") as step:
            began = time.time()
            base_backup(at.database_url, base)
            done = time.time()
            size = sum(path.stat().st_size for path in base.rglob("*") if path.is_file()) / 1e6
            step.found = (
                f"pg_basebackup and pg_verifybackup, {size:.0f} MB; {orders.summary_between(began, done)}"
            )
        time.sleep(BEFORE_S)
        with steps.step("mistake") as step:
            moment = time.time()
            time.sleep(1)
            removals = [at.press.remove(each.vll) for each in mistaken]
            with at.checker() as checker:
                checker.require_completed(removals, within_s=60)
            time.sleep(SINCE_S)
            in_service = at.lines_in_service()
            lost_at = time.time()
            step.require(
                not orders.refused_before(lost_at),
                f"orders were refused: {orders.refused_before(lost_at)[:3]}",
            )
            step.found = (
                f"all {len(mistaken)} lines of a customer removed, from the routers too; orders went on for"
                f" {SINCE_S} s"
            )
    with steps.step("recover") as step:
        at.processes_stop()
        stopped = time.time()
        last_segment_archive(at.database_url)
        archived = time.time()
        at.database.child.stop()
        expected = Expected(
            configs=at.configs(),
            kept=[*mistaken, *orders.before(moment)],
            later=[each for each in orders.accepted if each.accepted_at >= moment],
            removed={each.vll for each in mistaken},
            seeded=seeded,
            lost_at=lost_at,
            in_service=in_service,
        )
        home = at.folder / "recovered"
        home.mkdir(mode=0o700)
        shutil.copy2(at.folder / "elsewhere" / "password", home / "password")
        recovery_prepare(base, home / "cluster", wal=wal, moment=datetime.fromtimestamp(moment, UTC))
        [port] = free_ports(1)
        recovered = until.enter_context(
            postgres.running(
                folder=home,
                log=at.logs / "postgres-recovered.log",
                port=port,
                durable=True,
                kept=True,
                ready_within_s=RECOVERED_WITHIN_S,
            )
        )
        recovered_wait(recovered.url, within_s=RECOVERED_WITHIN_S)
        at.stack.portal.use_database(recovered)
        segments = len(list(wal.iterdir()))
        step.found = (
            f"last segment archived after {archived - stopped:.1f} s; base and {segments} segments, to the"
            f" second before the mistake, {time.time() - archived:.1f} s later"
        )
    database_check(steps, at, expected)
    portal_start(steps, at)
    quarantine_list(steps, at, expected)
    reconcile(steps, at)
    promises_check(steps, at, expected, taken_away=set())
    with steps.step("undone") as step:
        configs = at.configs()
        still_gone = [each.vll for each in mistaken if not forwarding(configs, each.vll)]
        step.require(not still_gone, f"removed by mistake, and not forwarding again: {still_gone}")
        step.found = f"{len(mistaken)} lines that were removed by mistake are made again"
    new_order_check(steps, at, 1)
