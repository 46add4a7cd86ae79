"""CSV that a spreadsheet cannot be attacked with (RFC 4180; OWASP: CSV Injection)."""

import csv
from collections.abc import Iterable, Iterator

# As wide as a Latin letter and as wide as a Chinese one: some spreadsheets take either.
_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


class _Echo:
    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """One line of text for each row, of cells that are all ``neutral``."""
    writer = csv.writer(_Echo())
    for row in rows:
        yield writer.writerow([neutral(cell) for cell in row])


def neutral(cell: object) -> object:
    """The cell, as text that no spreadsheet takes for a formula and no terminal for a command.

    What cannot be printed becomes a space, and a text that begins like a formula gets a quote before it;
    numbers stay numbers.
    """
    if not isinstance(cell, str):
        return cell
    text = "".join(each if each.isprintable() else " " for each in cell)
    return f"'{text}" if text.lstrip().startswith(_FORMULA_STARTS) else text
