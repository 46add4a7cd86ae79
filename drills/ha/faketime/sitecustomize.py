"""Python itself reads this as it starts, beside libfaketime, whose 0.9.10 answers `time.sleep` with EINVAL.

It takes the moment of the monotonic clock that is waited for (clock_nanosleep, TIMER_ABSTIME) for one of the
clock that it moves.
"""

import select
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = _sleep
