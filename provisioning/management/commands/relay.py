"""The process that moves messages from the outbox to Celery."""

import signal
import threading
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from portal.celery import app
from provisioning.outbox_relay import relay_run
from provisioning.task_publisher import Publisher


class Command(BaseCommand):
    help = "Publishes outbox rows to Celery until SIGTERM or SIGINT."
    # As in portal/celery.py.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()

        def request_stop(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGTERM, request_stop)
        signal.signal(signal.SIGINT, request_stop)
        relay_run(Publisher(app), stopped=stop.is_set, wait=stop.wait)
