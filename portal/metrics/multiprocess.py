"""The storage of this process's counters: files that the metrics process of this machine adds up."""

import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, values
from prometheus_client.values import MultiProcessValue

from portal.metrics.process_slots import Slots

# A separate registry: the Python metrics that prometheus_client adds by default would belong to no particular
# process.
REGISTRY = CollectorRegistry()

# A number that no slot has.
_NOBODY = -1


def _when_counting(slot: Callable[[], int]) -> Callable[[], int]:
    """Return a function that takes a slot only when counting begins.

    prometheus_client calls it once beforehand. A process that only imports this module, such as a command,
    takes no slot.
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
    # prometheus_client reads this variable whenever it opens a file.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = settings.LONGLINE_METRICS_DIR
    slots = Slots(Path(settings.LONGLINE_METRICS_DIR))
    values.ValueClass = MultiProcessValue(_when_counting(slots.of_this_process))
