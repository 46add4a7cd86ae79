"""Celery's names of the tasks of imports."""

RUN = "imports.run"
SWEEP = "imports.sweep"
