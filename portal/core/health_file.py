"""A sign of life of processes without a port: they touch a file, and a health check reads its age."""

from pathlib import Path
from typing import Any

from django.conf import settings


def beat(*_: Any, **__: Any) -> None:
    """Touch ``LONGLINE_ALIVE_FILE``, if it is set. Also a receiver for Celery's signals."""
    if settings.LONGLINE_ALIVE_FILE:
        Path(settings.LONGLINE_ALIVE_FILE).touch()
