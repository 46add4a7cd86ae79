"""Find out whether a figure grows, from the slope of a straight line through its samples.

The slope has a standard error.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple


class Slope(NamedTuple):
    """A slope per hour, and its standard error. A slope of more than twice its standard error is
    significant.
    """

    per_hour: float
    error: float

    @property
    def is_zero(self) -> bool:
        return abs(self.per_hour) <= 2 * self.error

    def __str__(self) -> str:
        return f"{self.per_hour:+.3g} ± {self.error:.2g} per hour{', 0' if self.is_zero else ''}"


def slope(samples: Sequence[tuple[float, float]]) -> Slope | None:
    """Return the least-squares slope of pairs (seconds, value). Return None for fewer than three samples.

    The standard error assumes that the samples are independent. If a figure oscillates slowly, the slope is
    less certain than the error suggests.
    """
    count = len(samples)
    if count < 3:
        return None
    mean_t, mean_v = (sum(each) / count for each in zip(*samples, strict=True))
    spread = sum((t - mean_t) ** 2 for t, _ in samples)
    steep = sum((t - mean_t) * (v - mean_v) for t, v in samples) / spread
    rest = sum((v - mean_v - steep * (t - mean_t)) ** 2 for t, v in samples)
    return Slope(steep * 3600, sqrt(rest / (count - 2) / spread) * 3600)
