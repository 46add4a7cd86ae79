"""The Celery task of NetBox."""

from celery import shared_task
from django.conf import settings

from portal.core import clock
from portal.netbox_sync.sync_run import sync_due
from portal.netbox_sync.task_names import SYNC


# Whole imports take as long as NetBox does; another worker that gets the message again finds it claimed.
@shared_task(name=SYNC, time_limit=settings.LONGEST_TASK_S)
def sync_netbox() -> None:
    sync_due(now=clock.now())
