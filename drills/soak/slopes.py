"""Whether a series of measurements rises: a line through it by least squares, and how sure its slope is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

# So many standard errors from 0 a slope is taken for one: by chance once in some hundred times.
SURE = 3.0


@dataclass(frozen=True, slots=True)
class Slope:
    """``per_hour`` and its standard error, in the unit of the series; ``mean``: of the series.

    The error supposes that what is left beside the line is independent from one measurement to the next. What
    swings slowly is less sure than that.
    """

    mean: float
    per_hour: float
    error: float

    @property
    def rises(self) -> bool:
        return self.per_hour > SURE * self.error


def slope(times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """Of at least three measurements. Raises StatisticsError."""
    fit = linear_regression(times_s, values)
    middle = fmean(times_s)
    rest = sum((v - fit.intercept - fit.slope * t) ** 2 for t, v in zip(times_s, values, strict=True))
    spread = sum((t - middle) ** 2 for t in times_s)
    error = math.sqrt(rest / (len(times_s) - 2) / spread)
    return Slope(fmean(values), fit.slope * 3600, error * 3600)
