"""CSV files: spreadsheets see no formulas, terminals see no commands, and numbers stay numbers."""

import csv
import io

import pytest

from portal.core.plain_text import csv_lines


def cell(value: object) -> str:
    ((read,),) = csv.reader(io.StringIO("".join(csv_lines([[value]])), newline=""))
    return read


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "\u200b@", "＝", "＋", "－", "＠"]
)
def test_a_text_that_begins_like_a_formula_is_quoted(start: str) -> None:
    assert cell(f"{start}1+1").startswith("'")


@pytest.mark.parametrize("sign", ["\x1b", "\x00", "\r", "\n", "\x7f", "\x9b", "\u202e", "\u2028"])
def test_control_characters_become_spaces(sign: str) -> None:
    assert cell(f"Milk{sign}[31mrun") == "Milk [31mrun"


def test_other_texts_and_numbers_stay_unchanged() -> None:
    joined = "می\u200cخواهم \U0001f469\u200d\U0001f52c 1\u00a0000"
    assert [cell(value) for value in (joined, "Zürich, “a=b”", "1-2", -1, 0.5, None, True)] == [
        joined,
        "Zürich, “a=b”",
        "1-2",
        "-1",
        "0.5",
        "",
        "True",
    ]
