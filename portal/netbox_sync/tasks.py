"""The Celery task of NetBox."""

from celery import shared_task
from django.conf import settings

from portal.celery_tasks import SYNC_NETBOX
from portal.core import clock
from portal.netbox_sync.sync_run import sync_due


# A complete import may take a long time, depending on NetBox. Meanwhile, Celery may deliver the message to a
# second worker. That worker does nothing, because the first worker has the claim.
@shared_task(name=SYNC_NETBOX, time_limit=settings.LONGEST_TASK_S)
def sync_netbox() -> None:
    sync_due(now=clock.now())
