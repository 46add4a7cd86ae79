"""Plain text: without characters that control a terminal or change the direction of writing.

For example, a name with U+202E reverses the words next to it, so that a page shows text that nobody wrote.
CSV (RFC 4180) also has no cells that a spreadsheet would run as formulas (OWASP: CSV Injection).
"""

import csv
import unicodedata
from collections.abc import Iterable, Iterator

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

# Unicode's explicit directional formatting characters (UAX 9).
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Controls, halves of surrogate pairs, and Unicode's own line and paragraph separators.
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")
_OF_LINES = "\t\n\r"
# Forms and serializers refuse this character with their own message.
_REFUSED_ELSEWHERE = "\0"
NAMED = 5


def is_plain(text: str) -> bool:
    """Return whether every character is visible or white space."""
    return not _hidden(text)


def made_plain(text: str) -> str:
    """Return the text. A space replaces each character that is not plain."""
    hidden = _hidden(text)
    return "".join(" " if each in hidden else each for each in text) if hidden else text


def plain_line(text: str) -> None:
    """Validate one line of plain text in a form or serializer. Raises ValidationError."""
    _refuse(_hidden(text.replace(_REFUSED_ELSEWHERE, "")))


def plain_lines(text: str) -> None:
    """Validate several lines of plain text, which may contain tabs. Raises ValidationError."""
    _refuse(_hidden("".join(each for each in text if each not in _REFUSED_ELSEWHERE + _OF_LINES)))


def _hidden(text: str) -> set[str]:
    if text.isprintable():
        # A printable text contains none of these characters, and most texts are printable.
        return set()
    return {each for each in text if unicodedata.category(each) in _CONTROLS or each in _TURNING}


def _refuse(hidden: set[str]) -> None:
    if hidden:
        named = ", ".join(f"U+{ord(each):04X}" for each in sorted(hidden)[:NAMED])
        message = _(
            "The text contains invisible characters (%(named)s) that change how the text around them is "
            "shown. Remove them, or type the text again."
        )
        raise ValidationError(message, code="not_plain_text", params={"named": named})


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
