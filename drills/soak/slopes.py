"""Whether a series of measurements rises: a least-squares line, and the standard error of its slope."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

# A slope of at least this number of standard errors counts as real. Without a real slope, chance produces
# such a slope about once in a few hundred series.
SURE = 3.0


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope per hour and its standard error, in the unit of the series; and the mean of the series.

    The error assumes that the residuals of consecutive measurements are independent. If a figure oscillates
    slowly, the slope is less certain than the error suggests.
    """

    mean: float
    per_hour: float
    error: float

    @property
    def rises(self) -> bool:
        return self.per_hour > SURE * self.error


def slope(times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """Return the slope of a series with at least three measurements. Raises StatisticsError."""
    fit = linear_regression(times_s, values)
    middle = fmean(times_s)
    rest = sum((v - fit.intercept - fit.slope * t) ** 2 for t, v in zip(times_s, values, strict=True))
    spread = sum((t - middle) ** 2 for t in times_s)
    error = math.sqrt(rest / (len(times_s) - 2) / spread)
    return Slope(fmean(values), fit.slope * 3600, error * 3600)
