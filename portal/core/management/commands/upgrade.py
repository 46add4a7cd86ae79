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

from portal.core.advisory_locks import AdvisoryLock
from portal.core.backoff import backoff
from portal.core.direct_connection import connect_directly, direct_parameters
from portal.core.lock_holders import LockHolders
from portal.core.lock_timeout import LockPatience
from portal.core.unfinished_indexes import invalid_indexes, unfinished_indexes_drop

_FIRST_PAUSE = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(seconds=30)
_OTHERS_EVERY_S = 1.0


class Command(BaseCommand):
    help = (
        "Runs the migrations under a lock; a second one waits, and then finds nothing to do. Where somebody "
        "holds a table it gives way and tries again: what waits for a table makes everybody else wait."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--lock-timeout",
            type=float,
            default=5,
            metavar="SECONDS",
            help="give way after having waited for a table this long; others wait behind us meanwhile (5)",
        )
        parser.add_argument(
            "--give-up-after",
            type=float,
            default=300,
            metavar="SECONDS",
            help="try again until then, and say who holds the table (300)",
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
                f"These indexes are invalid, so that each write pays for them and no reader uses them: "
                f"{', '.join(invalid)}. No migration makes them. REINDEX INDEX CONCURRENTLY repairs one, "
                f"DROP INDEX CONCURRENTLY removes it."
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
                    "DATABASE_URL leads through a pooler, and migrations need a session of their own: its "
                    "settings and locks hold from one transaction to the next. Put the address of PostgreSQL "
                    "itself into DATABASE_DIRECT_URL."
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
                    f"The upgrade gave up at {command.at}: after {give_up_after_s:g} s what it has to change "
                    f"is still held by {watch.last}. What was applied before stays, and this was undone; an "
                    f"index that was being made is dropped and created again by the next run. The release "
                    f"that runs goes on. Wait until that transaction has ended, or end it with "
                    f"pg_terminate_backend, and run `manage.py upgrade` again."
                )
            self._print(f"Gave way at {command.at} to {watch.last}. Trying again in {pause:g} s.")
            sleep(pause)

    def _print(self, what: str) -> None:
        self.stdout.write(what)
        self.stdout.flush()


class _NamedMigrate(migrate.Command):
    """Django's ``migrate``. ``at``: the current migration, for messages."""

    at = "its beginning"

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        if action == "apply_start":
            self.at = f"migration {migration}"
        elif action == "apply_success":
            # After the last migration, Django's post_migrate signal creates triggers, permissions and content
            # types.
            self.at = f"what follows migration {migration}"
        super().migration_progress_callback(action, migration, fake)
