"""The Celery application. Messages carry only task names and ids."""

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

from portal.core.background_work import QueueNotes, beat
from portal.processes.preloaded_objects import preloaded_objects_freeze

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
# `manage.py upgrade` runs Django's checks. In a worker they would load all pages and the whole API.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
app = Celery("longline", task_cls="portal.audit.actor:AuditedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect(dispatch_uid="longline_logs")
def keep_log_format(**_: Any) -> None:
    """Keep the portal's logging: Celery configures its own logging unless this signal has a receiver."""
    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect(dispatch_uid="longline_metrics")
def measure_tasks(**_: Any) -> None:
    """Measure tasks in workers only; connected before the worker's pool forks."""
    import_module("portal.metrics.requests_and_tasks")


@worker_init.connect(dispatch_uid="longline_plans")
def plan_each_statement(**_: Any) -> None:
    """Turn off prepared statements in workers.

    Tasks read the rows of a router, as pages do (portal.core.db.sessions). One plan for all values
    would suit neither a router with ten ends nor a router with thousands of ends.
    """
    settings.DATABASES["default"]["OPTIONS"]["prepare_threshold"] = None


@worker_init.connect(dispatch_uid="longline_garbage")
def collect_garbage_often(**_: Any) -> None:
    """Restore frequent garbage collection after all tasks are imported and before the pool forks."""
    preloaded_objects_freeze()


@task_prerun.connect(dispatch_uid="longline_connections")
@task_postrun.connect(dispatch_uid="longline_connections")
def keep_sound_connections(**_: Any) -> None:
    """Keep a connection for the next task unless it is broken or too old, as Django does between requests."""
    close_old_connections()


# A worker's heartbeat comes every two seconds while Redis accepts it; beat sends tasks as often.
heartbeat_sent.connect(beat, dispatch_uid="longline_alive")
# Kept in a variable, because Celery refers to its receivers weakly.
note_queues = QueueNotes()
heartbeat_sent.connect(note_queues, dispatch_uid="longline_queues")


@beat_init.connect(dispatch_uid="longline_alive")
def beat_is_alive_when_it_sends(**_: Any) -> None:
    after_task_publish.connect(beat, dispatch_uid="longline_alive")
