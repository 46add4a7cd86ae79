"""CSV that a spreadsheet cannot be attacked with (RFC 4180; OWASP: CSV Injection)."""

import csv
from collections.abc import Iterable, Iterator

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """One line of text for each row; a text that begins like a formula gets a quote before it."""
    writer = csv.writer(_Echo())
    for row in rows:
        yield writer.writerow([neutral(cell) for cell in row])


def neutral(cell: object) -> object:
    """The cell, as text that no spreadsheet takes for a formula; numbers stay numbers."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS) else cell
