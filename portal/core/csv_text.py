"""CSV without cells that a spreadsheet would run as formulas (RFC 4180; OWASP: CSV Injection)."""

import csv
import unicodedata
from collections.abc import Iterable, Iterator

from portal.core.plain_text import made_plain

# Half-width and full-width (East Asian) forms, because some spreadsheets accept both.
_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


class _Echo:
    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield one line of CSV for each row. Each cell is passed through ``neutral``."""
    writer = csv.writer(_Echo())
    for row in rows:
        yield writer.writerow([neutral(cell) for cell in row])


def neutral(cell: object) -> object:
    """Return the cell so that no spreadsheet reads it as a formula and no terminal reads it as a command.

    Control characters, line breaks and characters that change the direction of writing become spaces. A text
    that begins like a formula gets a leading single quote. Values that are not text do not change.
    """
    if not isinstance(cell, str):
        return cell
    text = made_plain(cell)
    return f"'{text}" if begins_like_a_formula(text) else text


def begins_like_a_formula(text: str) -> bool:
    """Return whether the first visible character begins a formula."""
    visible = (each for each in text if not each.isspace() and unicodedata.category(each) != "Cf")
    return next(visible, "") in _FORMULA_STARTS
