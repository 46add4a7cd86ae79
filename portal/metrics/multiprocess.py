"""The storage of this process's counters: files, which the metrics process of the machine adds up."""

import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, values
from prometheus_client.values import MultiProcessValue

from portal.metrics.process_slots import Slots

# Use a separate registry. prometheus_client's default registry also contains metrics of Python itself, which
# would be added up over all processes.
REGISTRY = CollectorRegistry()

# No slot has this number.
_NOBODY = -1


def _when_counting(slot: Callable[[], int]) -> Callable[[], int]:
    """Return a function that does not take a slot before the first value is counted.

    prometheus_client calls the function once while this module is imported. That call takes no slot. A
    process that never counts, such as a command, therefore takes no slot.
    """
    called_before = False

    def number() -> int:
        nonlocal called_before
        if not called_before:
            called_before = True
            return _NOBODY
        return slot()

    return number


if settings.LONGLINE_METRICS_DIR:
    # prometheus_client reads this variable each time it opens a file.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = settings.LONGLINE_METRICS_DIR
    slots = Slots(Path(settings.LONGLINE_METRICS_DIR))
    values.ValueClass = MultiProcessValue(_when_counting(slots.of_this_process))
