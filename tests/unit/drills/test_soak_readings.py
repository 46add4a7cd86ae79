"""The readings of a soak are in its file immediately, and can be read after the soak was killed."""

from pathlib import Path

import pytest

from drills.soak.__main__ import main
from drills.soak.gauges import Reading
from drills.soak.readings import readings_add, series_in


def test_readings_are_flushed_and_an_incomplete_row_is_omitted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "readings.csv"
    with path.open("w") as written:
        readings_add(
            written, 0.5, [Reading("memory web", 100.25, "MB"), Reading("connections", 7, "connections")]
        )
        readings_add(written, 60, [Reading("memory web", 101.0, "MB")])
        with path.open("a") as killed:
            killed.write("120.000,memory web,10")
        assert series_in(path) == {
            ("memory web", "MB"): [(0.5, 100.25), (60.0, 101.0)],
            ("connections", "connections"): [(0.5, 7.0)],
        }


def test_slopes_are_printed_from_saved_readings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "readings.csv"
    with path.open("w") as written:
        for minute in range(60):
            # The first quarter, with a steep rise, is left out.
            value = 100 + minute / 60 * 6 if minute >= 15 else minute
            readings_add(written, minute * 60, [Reading("memory web", value, "MB")])
    assert main(["--read", str(path)]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("soak memory web mean 103.7 slope 6 error ")
    assert line.endswith(" MB/h rises")
