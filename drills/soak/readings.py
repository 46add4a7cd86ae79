"""A file of readings. Each reading is written immediately, so that a killed soak does not lose
its measurements.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from drills.soak.gauges import Reading

# For each (name, unit), pairs of (seconds since the beginning, value).
Series = dict[tuple[str, str], list[tuple[float, float]]]


def readings_add(file: TextIO, at_s: float, readings: Iterable[Reading]) -> None:
    """Append rows ``seconds,name,value,unit`` to the file. When this returns, they are in the file."""
    csv.writer(file).writerows((f"{at_s:.3f}", each.name, each.value, each.unit) for each in readings)
    file.flush()


def series_in(path: Path) -> Series:
    """Return the series in a file. An incomplete last row is left out."""
    series: Series = defaultdict(list)
    text = path.read_text()
    for at_s, name, value, unit in csv.reader(text[: text.rfind("\n") + 1].splitlines()):
        series[name, unit].append((float(at_s), float(value)))
    return series
