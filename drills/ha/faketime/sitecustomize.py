"""A fix for `time.sleep` under libfaketime, which Python imports at its start.

libfaketime 0.9.10 makes `time.sleep` fail with EINVAL. It takes the deadline on the monotonic clock
(clock_nanosleep, TIMER_ABSTIME) for a deadline on the clock that it moves.
"""

import select
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = _sleep
