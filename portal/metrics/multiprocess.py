"""The place of this process's counters: in files, which this machine's metrics process adds up."""

import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, values
from prometheus_client.values import MultiProcessValue

from portal.metrics.process_slots import Slots

# Ours alone: what prometheus_client says of the Python process by itself is of no process in particular.
REGISTRY = CollectorRegistry()

# No slot has it.
_NOBODY = -1


def _when_counting(slot: Callable[[], int]) -> Callable[[], int]:
    """prometheus_client asks once beforehand; who only imports this, such as a command, takes no slot."""
    asked = False

    def number() -> int:
        nonlocal asked
        if not asked:
            asked = True
            return _NOBODY
        return slot()

    return number


if settings.LONGLINE_METRICS_DIR:
    # prometheus_client reads it whenever it opens a file.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = settings.LONGLINE_METRICS_DIR
    slots = Slots(Path(settings.LONGLINE_METRICS_DIR))
    values.ValueClass = MultiProcessValue(_when_counting(slots.of_this_process))
