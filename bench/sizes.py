"""The amount of work of each benchmark: the usual amount, or the least that shows that it still measures.

``BENCH_SIZE=smallest`` chooses the least amount for ``python -m bench``. The tests run every benchmark with
it. Do not compare its figures with others.
"""

import os

SMALLEST = os.environ.get("BENCH_SIZE") == "smallest"


def sized(usual: int, *, smallest: int) -> int:
    """Return the amount for the chosen size."""
    return smallest if SMALLEST else usual
