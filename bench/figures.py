"""The figures of a benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure. `value` is None if this machine lacks the thing to measure.

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
    """Return the smallest sample that at least `percent` of all samples do not exceed (nearest rank)."""
    ordered = sorted(samples)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]
