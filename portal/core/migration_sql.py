"""SQL for what Django has no words for, in files of its own, ``portal/<app>/sql/``: functions, triggers,
partitioned tables, indexes of expressions.
"""

from pathlib import Path

from django.db.migrations import RunSQL

_PORTAL = Path(__file__).resolve().parent.parent


def run_sql(app: str, name: str) -> RunSQL:
    """Runs ``portal/<app>/sql/<name>.sql`` in a migration. It is not undone: going back is a restore."""
    return RunSQL((_PORTAL / app / "sql" / f"{name}.sql").read_text(encoding="utf-8"))
