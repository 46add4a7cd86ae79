"""Garbage collection of the objects that exist before a process forks."""

import gc
from typing import Any


def preloaded_objects_freeze() -> None:
    """Exclude all existing objects from garbage collection, and collect new objects more often.

    Call it after the imports and before the first fork. Python collects old objects only when the number of
    new objects has reached a quarter of the number of old objects, and the imports create 200,000 objects.
    Without this call, cycles of objects that requests and tasks leave behind would remain for a long time,
    and each collection would stop all threads for a long time. The new thresholds are the defaults of Python
    3.11. During start-up they would be too low (`portal/__init__.py`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)


def when_ready(server: Any) -> None:
    """gunicorn's hook, for servers that import the portal before they fork."""
    preloaded_objects_freeze()
