"""SQL that Django's migrations cannot express, in files in ``portal/<app>/sql/``: functions, triggers,
partitioned tables, indexes of expressions.
"""

from pathlib import Path

from django.db.migrations import RunSQL

_PORTAL = Path(__file__).resolve().parents[2]


def run_sql(app: str, name: str) -> RunSQL:
    """Return a migration operation that runs ``portal/<app>/sql/<name>.sql``.

    The operation cannot be reversed. To go back, restore a backup.
    """
    return RunSQL((_PORTAL / app / "sql" / f"{name}.sql").read_text(encoding="utf-8"))
