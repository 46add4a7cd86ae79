"""The amount of work of each benchmark: the usual amount, or the smallest amount with which it still works.

``BENCH_SIZE=smallest`` selects the smallest amount for ``python -m bench``. The tests run every benchmark
with the smallest amount. Do not compare the figures of such a run with figures of other runs.
"""

import os

SMALLEST = os.environ.get("BENCH_SIZE") == "smallest"


def sized(usual: int, *, smallest: int) -> int:
    """Return the amount that BENCH_SIZE selects."""
    return smallest if SMALLEST else usual
