"""A file of readings, written immediately: a killed soak does not lose its measurements."""

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from drills.soak.gauges import Reading

# By name and unit: seconds since the beginning, and the value.
Series = dict[tuple[str, str], list[tuple[float, float]]]


def readings_add(file: TextIO, at_s: float, readings: Iterable[Reading]) -> None:
    """Write rows of ``seconds,name,value,unit``; they are in the file when this returns."""
    csv.writer(file).writerows((f"{at_s:.3f}", each.name, each.value, each.unit) for each in readings)
    file.flush()


def series_in(path: Path) -> Series:
    """Read the rows. Omit a last row that is incomplete."""
    series: Series = defaultdict(list)
    text = path.read_text()
    for at_s, name, value, unit in csv.reader(text[: text.rfind("\n") + 1].splitlines()):
        series[name, unit].append((float(at_s), float(value)))
    return series
