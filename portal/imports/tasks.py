"""Celery tasks of imports."""

from uuid import UUID

from celery import shared_task

from portal.core import clock
from portal.imports import batches, operations, task_names


@shared_task(name=task_names.RUN)
def run_import(import_id: str, turn: int) -> None:
    """Batch after batch for two seconds; what is left is asked for again."""
    batches.import_run(import_id=UUID(import_id), turn=turn)


@shared_task(name=task_names.SWEEP)
def sweep_imports() -> None:
    """Asks again for imports that stand still, and forgets old ones."""
    now = clock.now()
    operations.imports_resume(now=now)
    operations.imports_forget(now=now)
