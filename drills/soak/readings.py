"""Readings in a file as they come: what a soak that is killed had measured is not lost."""

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from drills.soak.gauges import Reading

# By name and unit: seconds since the beginning, and the value.
Series = dict[tuple[str, str], list[tuple[float, float]]]


class ReadingsWriter:
    """Rows of ``seconds,name,value,unit``; each reading is in the file when ``add`` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="")
        self._rows = csv.writer(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def add(self, at_s: float, readings: Iterable[Reading]) -> None:
        self._rows.writerows((f"{at_s:.3f}", each.name, each.value, each.unit) for each in readings)
        self._file.flush()


def series_in(path: Path) -> Series:
    """What was written there. A last row that was cut off is left out."""
    series: Series = defaultdict(list)
    text = path.read_text()
    for at_s, name, value, unit in csv.reader(text[: text.rfind("\n") + 1].splitlines()):
        series[name, unit].append((float(at_s), float(value)))
    return series
