"""A fix for `time.sleep` under libfaketime. Python imports this module when it starts.

libfaketime 0.9.10 makes `time.sleep` fail with EINVAL. Python passes a deadline of the monotonic clock
(clock_nanosleep, TIMER_ABSTIME). libfaketime treats it as a deadline of the clock that libfaketime changes.
"""

import select
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex) -> None:
    select.select([], [], [], float(seconds))


time.sleep = _sleep
