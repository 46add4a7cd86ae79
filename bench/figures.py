"""The figures of a benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure. `value` is None if this machine cannot measure it.

    `note` states the conditions of the measurement.
    """

    name: str
    value: float | None
    unit: str
    note: str = ""

    def __str__(self) -> str:
        return f"bench {self.name} {self._value()} {self.unit}"

    def _value(self) -> str:
        if self.value is None:
            return "absent"
        return f"{self.value:.4g}" if self.value < 1000 else f"{self.value:.0f}"


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the percentile by nearest rank: the smallest sample with the property that at least `percent` %
    of the samples are not larger.
    """
    ordered = sorted(samples)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]
