"""How much each benchmark does: the usual amount, or the least that shows that it still measures.

``BENCH_SIZE=smallest`` chooses the latter for ``python -m bench``; the tests run every benchmark so. Its
figures compare with nothing.
"""

import os

SMALLEST = os.environ.get("BENCH_SIZE") == "smallest"


def sized(usual: int, *, smallest: int) -> int:
    """Return the amount for the chosen size."""
    return smallest if SMALLEST else usual
