"""Django on a private, durable PostgreSQL, for benchmarks that run in this process."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.sizes import SMALLEST
from devstack import services
from devstack.databases.postgres import migrated_cluster


@contextmanager
def migrated() -> Iterator[services.Services]:
    """Set up Django on a database with tables and without rows. Use it once per process: Django reads its
    settings once.

    Commits are written to disk, as in production. Exception: the smallest size uses a copy of the tests'
    cluster, without fsync.
    """
    with tempfile.TemporaryDirectory(prefix="longline-bench-") as name:
        folder = Path(name)
        # The account that runs PostgreSQL must be able to enter this folder.
        folder.chmod(0o711)
        with services.running(
            folder=folder / "services",
            logs=folder / "log",
            durable=not SMALLEST,
            template=migrated_cluster() if SMALLEST else None,
        ) as private:
            os.environ |= {
                "DJANGO_SETTINGS_MODULE": "portal.settings",
                "SECRET_KEY": "for-benchmarks-only",
                "TOKEN_PEPPER": "for-benchmarks-only",
                "DATABASE_URL": private.database_url,
                "REDIS_URL": private.redis_url,
                "LOG_LEVEL": "WARNING",
            }
            import django
            from django.core.management import call_command
            from django.db import connections

            django.setup()
            if not SMALLEST:
                call_command("migrate", verbosity=0)
            try:
                yield private
            finally:
                connections.close_all()
