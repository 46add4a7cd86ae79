"""Objects that were imported before processes fork, and Python's garbage collection of them."""

import gc
from typing import Any


def preloaded_objects_freeze() -> None:
    """Exclude all imported objects from garbage collection, before the first process forks.

    Python collects old objects only after a quarter as many new ones exist. An import makes 200,000 objects.
    Cycles that requests and tasks leave would then wait for a long time, and all threads stop during a
    collection. From here on, Python also collects as often as Python 3.11 does by default. During start-up
    that is too often (`portal/__init__.py`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)


def when_ready(server: Any) -> None:
    """gunicorn's hook for servers that import the portal before they fork."""
    preloaded_objects_freeze()
