"""Celery tasks of imports."""

from uuid import UUID

from celery import shared_task

from portal import celery_tasks
from portal.core import clock
from portal.core.background_work import each_row
from portal.imports import operations


@shared_task(name=celery_tasks.RUN_IMPORT)
def run_import(import_id: str, turn: int) -> None:
    """Process batches for about two seconds. If rows are left, queue the import again."""
    operations.import_run(import_id=UUID(import_id), turn=turn)


@shared_task(name=celery_tasks.SWEEP_IMPORTS)
def sweep_imports() -> None:
    """Queue a stalled import again, and delete old imports."""
    now = clock.now()
    parts = (operations.imports_resume, operations.imports_forget)
    each_row(parts, lambda part: part(now=now), what="a part of sweeping imports")
