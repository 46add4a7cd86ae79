"""The tasks of imports, by the names that Celery knows."""

RUN = "imports.run"
SWEEP = "imports.sweep"
