"""A health signal of processes without a port: they touch a file, and a health check reads the file's age."""

from pathlib import Path
from typing import Any

from django.conf import settings


def beat(*_: Any, **__: Any) -> None:
    """Touch the file ``LONGLINE_ALIVE_FILE``, if the setting is not empty.

    The arguments are ignored, so that the function can receive Celery's signals.
    """
    if settings.LONGLINE_ALIVE_FILE:
        Path(settings.LONGLINE_ALIVE_FILE).touch()
