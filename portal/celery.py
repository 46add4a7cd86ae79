"""The Celery application: task names and ids only travel through it."""

import logging.config
import os
from importlib import import_module
from typing import Any

from celery import Celery
from celery.signals import (
    after_task_publish,
    beat_init,
    heartbeat_sent,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
)
from django.conf import settings
from django.db import close_old_connections

from portal.core.health_file import beat
from portal.core.served_queues import QueueNotes
from portal.processes.preloaded_objects import preloaded_objects_freeze

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
# `manage.py upgrade` makes Django's checks; here they would load all pages and the whole API.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
app = Celery("longline", task_cls="portal.audit.actor:AuditedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect(dispatch_uid="longline_logs")
def log_as_all_others_do(**_: Any) -> None:
    """Celery would set up logging of its own, unless somebody listens to this."""
    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect(dispatch_uid="longline_metrics")
def measure_tasks(**_: Any) -> None:
    """Only a worker runs tasks; before its pool forks."""
    import_module("portal.metrics.celery_tasks")


@worker_init.connect(dispatch_uid="longline_plans")
def plan_statements_anew(**_: Any) -> None:
    """One plan for all values would suit neither a router of ten ends nor one of thousands.

    See portal.core.postgres_plans: tasks read by router, as pages do.
    """
    settings.DATABASES["default"]["OPTIONS"]["prepare_threshold"] = None


@worker_init.connect(dispatch_uid="longline_garbage")
def look_for_garbage_often(**_: Any) -> None:
    """After all tasks are imported, and before the pool forks."""
    preloaded_objects_freeze()


@task_prerun.connect(dispatch_uid="longline_connections")
@task_postrun.connect(dispatch_uid="longline_connections")
def keep_sound_connections(**_: Any) -> None:
    """As Django does between requests: a connection is kept for the next task unless it broke or is old."""
    close_old_connections()


# A worker's heart beats every two seconds while Redis takes it; beat sends something as often.
heartbeat_sent.connect(beat, dispatch_uid="longline_alive")
# Kept here: Celery refers to its receivers weakly.
note_queues = QueueNotes()
heartbeat_sent.connect(note_queues, dispatch_uid="longline_queues")


@beat_init.connect(dispatch_uid="longline_alive")
def beat_is_alive_when_it_sends(**_: Any) -> None:
    after_task_publish.connect(beat, dispatch_uid="longline_alive")
