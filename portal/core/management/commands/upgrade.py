"""Migrate the tables to this release while the portal is in use. Only one upgrade migrates at a time."""

from argparse import ArgumentParser
from datetime import timedelta
from itertools import count
from time import monotonic, sleep
from typing import Any

import psycopg
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected, LockNotAvailable

from portal.core.background_work import backoff
from portal.core.db.migration_support import (
    LockHolders,
    LockPatience,
    invalid_indexes,
    unfinished_indexes_drop,
)
from portal.core.db.sessions import AdvisoryLock, connect_directly, direct_parameters

_FIRST_PAUSE = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(seconds=30)
_OTHERS_EVERY_S = 1.0


class Command(BaseCommand):
    help = (
        "Runs the migrations, one upgrade at a time: a second upgrade waits, and then finds nothing to do. "
        "If another transaction has locked a table, the upgrade stops waiting after --lock-timeout and "
        "tries again later, because all other queries of the table wait behind it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--lock-timeout",
            type=float,
            default=5,
            metavar="SECONDS",
            help="the longest wait for the lock of a table before a pause; other queries wait meanwhile (5)",
        )
        parser.add_argument(
            "--give-up-after",
            type=float,
            default=300,
            metavar="SECONDS",
            help="end with an error after this time, and name the transaction with the lock (300)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        connect_directly()
        # The lock belongs to the session of a separate connection, so that it lasts for the whole upgrade.
        with psycopg.connect(**direct_parameters(), autocommit=True) as holder:
            self._lock(holder)
            self._upgrade(
                holder, lock_timeout_s=options["lock_timeout"], give_up_after_s=options["give_up_after"]
            )
        if invalid := invalid_indexes():
            self.stderr.write(
                f"These indexes are invalid: they make writes slower, and no query uses them: "
                f"{', '.join(invalid)}. No pending migration creates them. REINDEX INDEX CONCURRENTLY "
                f"repairs an index, DROP INDEX CONCURRENTLY removes it."
            )

    def _lock(self, holder: psycopg.Connection) -> None:
        has_reported = False
        # Poll for the lock. A statement that waits for the lock would keep a transaction open. CONCURRENTLY
        # statements of the other upgrade would then wait for that transaction.
        while holder.execute("SELECT pg_try_advisory_lock(%s)", [AdvisoryLock.UPGRADE]).fetchone() != (True,):
            if not has_reported:
                self._print("Another upgrade is running; this one waits for it.")
                has_reported = True
            sleep(_OTHERS_EVERY_S)

    def _upgrade(self, holder: psycopg.Connection, *, lock_timeout_s: float, give_up_after_s: float) -> None:
        give_up_at = monotonic() + give_up_after_s
        patience = LockPatience(usual_s=lock_timeout_s, concurrently_until=give_up_at)
        for failures in count():
            command = _NamedMigrate()
            session = patience.begin()
            if session != connection.connection.info.backend_pid:
                raise CommandError(
                    "DATABASE_URL leads through a pooler, but migrations need a session whose settings and "
                    "locks last longer than one transaction. Set DATABASE_DIRECT_URL to the address of "
                    "PostgreSQL itself."
                )
            watch = LockHolders(
                holder,
                waiting_pid=session,
                after_s=lock_timeout_s,
                report=lambda who: self._print(f"Waiting for {who}."),
            )
            try:
                with connection.execute_wrapper(patience), watch:
                    for name in unfinished_indexes_drop():
                        self._print(f"Dropped {name}, which an earlier attempt left unfinished.")
                    call_command(command, interactive=False, verbosity=1, stdout=self.stdout)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, (LockNotAvailable, DeadlockDetected)):
                    raise
            pause = backoff(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE).total_seconds()
            if monotonic() + pause > give_up_at:
                raise CommandError(
                    f"The upgrade gave up at {command.at}: after {give_up_after_s:g} s, the table is still "
                    f"locked by {watch.last}. Earlier migrations stay applied; this one was rolled back. The "
                    f"next run drops an unfinished index and creates it again. The running release keeps "
                    f"working. Wait until that transaction has ended, or end it with pg_terminate_backend. "
                    f"Then run `manage.py upgrade` again."
                )
            self._print(f"Gave way at {command.at} to {watch.last}. The upgrade tries again in {pause:g} s.")
            sleep(pause)

    def _print(self, what: str) -> None:
        self.stdout.write(what)
        self.stdout.flush()


class _NamedMigrate(migrate.Command):
    """Django's ``migrate``. ``at``: the current migration, for messages."""

    at = "the beginning"

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        if action == "apply_start":
            self.at = f"migration {migration}"
        elif action == "apply_success":
            # After the last migration, the signal post_migrate creates triggers, permissions and content
            # types.
            self.at = f"the steps after migration {migration}"
        super().migration_progress_callback(action, migration, fake)
