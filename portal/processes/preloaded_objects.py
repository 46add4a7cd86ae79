"""What was imported before processes fork, and Python's search for garbage in them."""

import gc
from typing import Any


def preloaded_objects_freeze() -> None:
    """Take all that was imported out of the garbage collector's sight, before the first process forks.

    Python looks through old objects only when a quarter as many are new: beside the 200,000 of an import,
    what requests and tasks leave in cycles waits long for that, and all threads stand still while it is done.
    From here on it also looks as often as Python 3.11 does by itself, too often for a start
    (`portal/__init__.py`).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)


def when_ready(server: Any) -> None:
    """gunicorn's hook, for servers that import the portal before they fork."""
    preloaded_objects_freeze()
