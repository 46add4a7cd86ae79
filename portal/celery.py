"""The Celery application: task names and ids only travel through it."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
app = Celery("longline", task_cls="portal.audit.context:AuditedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["provisioning", "portal.api"])
