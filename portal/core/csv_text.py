"""CSV that a spreadsheet cannot be attacked with (RFC 4180; OWASP: CSV Injection)."""

import csv
import unicodedata
from collections.abc import Iterable, Iterator

from portal.core.plain_text import made_plain

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

    Control characters, line ends and what turns the direction of writing become a space, and a text that
    begins like a formula gets a quote before it; numbers stay numbers.
    """
    if not isinstance(cell, str):
        return cell
    text = made_plain(cell)
    return f"'{text}" if begins_like_a_formula(text) else text


def begins_like_a_formula(text: str) -> bool:
    """By the first character that is seen."""
    seen = (each for each in text if not each.isspace() and unicodedata.category(each) != "Cf")
    return next(seen, "") in _FORMULA_STARTS
