"""Python itself reads this as it starts, beside libfaketime: its 0.9.10 answers EINVAL to what `time.sleep` asks.

`time.sleep` waits for a moment of the monotonic clock (clock_nanosleep, TIMER_ABSTIME), which the library takes
for one of the clock that it moves.
"""

import select
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


time.sleep = _sleep
