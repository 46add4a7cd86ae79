"""A sign of life of processes that nobody can ask: they touch a file, whose age a health check looks at."""

from pathlib import Path
from typing import Any

from django.conf import settings


def beat(*_: Any, **__: Any) -> None:
    """Touch ``LONGLINE_ALIVE_FILE``, where one is named. Also a receiver for Celery's signals."""
    if settings.LONGLINE_ALIVE_FILE:
        Path(settings.LONGLINE_ALIVE_FILE).touch()
