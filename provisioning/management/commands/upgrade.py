"""Bring the tables to this release: once, however many start at the same time."""

from typing import Any

import psycopg
from django.core.management import call_command
from django.core.management.base import BaseCommand

from portal.core.direct_connection import connect_directly, direct_parameters

# Any number that nobody else locks in this database.
_LOCK = 0x4C4F4E47


class Command(BaseCommand):
    help = "Runs the migrations under a lock; a second one waits, and then finds nothing to do."

    def handle(self, *args: Any, **options: Any) -> None:
        connect_directly()
        # A connection of its own: the lock lasts as long as it is open, and migrations end transactions.
        with psycopg.connect(**direct_parameters(), autocommit=True) as holder:
            holder.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            call_command("migrate", interactive=False, verbosity=1, stdout=self.stdout)
