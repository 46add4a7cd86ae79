"""A reader of tables in the dialects of spreadsheets (RFC 4180 and its variants)."""

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, field

from portal.core.errors import DomainError
from portal.core.plain_text import begins_like_a_formula
from portal.uploads import errors

MAX_BYTES = 8 * 1024 * 1024
_DELIMITERS = ",;\t"
_APOSTROPHE = "'"
# In an error file, this prefix marks a refused formula. A spreadsheet does not calculate a cell with this
# prefix, and the portal refuses it again.
_REFUSED = 2 * _APOSTROPHE
# No text in the portal is longer. Names have at most 100 characters.
LONGEST_CELL = 500
_LONGEST_SHOWN = 40
# Invisible characters that spreadsheets and web pages leave behind, and that are removed. Characters that
# change the writing direction are not among them: a row that contains them is refused.
_ZERO_WIDTH = "\N{SOFT HYPHEN}\N{ZERO WIDTH SPACE}\N{WORD JOINER}\N{ZERO WIDTH NO-BREAK SPACE}"
# The first line of a file, above the header, in which Excel names the separator.
_SEPARATOR = re.compile(r'"?sep=([,;\t])"?[,;\t]*(?:[\r\n]|\Z)', re.IGNORECASE)
_BLANKS = _DELIMITERS + _ZERO_WIDTH + '" \r\n\N{NO-BREAK SPACE}'
_NUMBER = re.compile(r"[+-]\d+([.,]\d+)?")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table. ``line`` is its first line in the file, from 1; ``cells`` has a value per column.

    ``refusals`` are errors in the syntax of the row. If a row has such errors, ``cells`` contains the texts
    of the file, and ``surplus`` the cells without a column. If ``refused_again`` then writes the row to a
    file, the portal refuses the row of that file too.
    """

    line: int
    cells: dict[str, str]
    surplus: list[str] = field(default_factory=list)
    refusals: list[DomainError] = field(default_factory=list)


def read_table(
    data: bytes, *, columns: Collection[str], required: Collection[str], max_rows: int
) -> list[TableRow]:
    """Return the rows like ``table_rows``, but raise the first refusal of any row: the table is accepted as a
    whole or not at all.
    """
    rows = table_rows(data, columns=columns, required=required, max_rows=max_rows)
    for row in rows:
        for refusal in row.refusals:
            raise refusal
    return rows


def table_rows(
    data: bytes, *, columns: Collection[str], required: Collection[str], max_rows: int
) -> list[TableRow]:
    """Return the rows below the header. Rows without any text are skipped, including rows before the header.

    The header must have all ``required`` columns and may have any of ``columns``. The order of columns and
    the case of their names do not matter. The cells of absent columns are "". Commas, semicolons or tabs
    separate cells. A first line such as ``sep=;`` selects the separator. Without such a line, the character
    that is most frequent in the header is the separator.

    Columns without a name are ignored if all their cells are empty. Invisible characters are removed at both
    ends of a cell, and anywhere in the name of a column. If a text that begins like a formula has one
    apostrophe before it, the apostrophe is removed, because the portal's exports add one. A formula with no
    apostrophe or with two is refused. Plain numbers with a sign are accepted.

    Raises an error of portal.uploads.errors if the table as a whole cannot be read.
    """
    if len(data) > MAX_BYTES:
        raise errors.TableTooLarge(max_bytes=MAX_BYTES)
    text = _decoded(data)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    header: list[str] | None = None
    rows: list[TableRow] = []
    begins = 1
    try:
        for cells in reader:
            if header is None:
                if any(map(_trimmed, cells)) and not (begins == 1 and _SEPARATOR.match(text)):
                    header = _header(cells, columns, required)
            elif any(map(_trimmed, cells)):
                if len(rows) == max_rows:
                    raise errors.TableTooLong(max_rows=max_rows)
                rows.append(_row(begins, cells, header, columns))
            begins = reader.line_num + 1
        if header is None:
            _header([], columns, required)
    except csv.Error:
        # Report the first line of the row: after an unclosed quotation mark, the cell contains all following
        # lines of the file.
        raise errors.TableQuotes(line=begins) from None
    return rows


def refused_again(cell: str) -> str:
    """Return a refused formula in a form that is refused again when the table is read."""
    return f"{_REFUSED}{cell}" if begins_like_a_formula(cell) else cell


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise errors.TableNotText(line=data.count(b"\n", 0, error.start) + 1) from None
    if "\0" in text:
        raise errors.TableNotText(line=text.count("\n", 0, text.index("\0")) + 1)
    return text


def _delimiter(text: str) -> str:
    """Return the separator.

    A first line with ``sep=`` names it. Without such a line, it is the most frequent separator in the header.
    If the header has no separator, it is the comma.
    """
    if named := _SEPARATOR.match(text):
        return named[1]
    lines = (line for line in io.StringIO(text, newline=None) if line.strip(_BLANKS))
    return max(_DELIMITERS, key=next(lines, "").count)


def _trimmed(cell: str) -> str:
    """Return the cell without invisible characters at both ends: all spaces and zero-width characters."""
    start, end = 0, len(cell)
    while start < end and _is_invisible(cell[start]):
        start += 1
    while end > start and _is_invisible(cell[end - 1]):
        end -= 1
    return cell[start:end]


def _is_invisible(character: str) -> bool:
    return character.isspace() or character in _ZERO_WIDTH


def _header(names: list[str], columns: Collection[str], required: Collection[str]) -> list[str]:
    header = [
        "".join(each for each in name if unicodedata.category(each) != "Cf").strip().casefold()
        for name in names
    ]
    while header and not header[-1]:
        header.pop()
    listed = ", ".join(columns)
    for name in filter(None, header):
        if name not in columns:
            raise errors.TableColumnUnknown(column=name[:_LONGEST_SHOWN], columns=listed)
        if header.count(name) > 1:
            raise errors.TableColumnTwice(column=name)
    for name in required:
        if name not in header:
            raise errors.TableColumnMissing(column=name, columns=listed)
    return header


def _row(line: int, cells: list[str], header: list[str], columns: Collection[str]) -> TableRow:
    row = TableRow(line, dict.fromkeys(columns, ""))
    named = [*header, *[""] * (len(cells) - len(header))]
    unnamed = [
        cell for name, each in zip(named, cells, strict=False) if not name and (cell := _trimmed(each))
    ]
    if unnamed:
        row.surplus.extend(cell[:LONGEST_CELL] for cell in unnamed)
        row.refusals.append(errors.TableRowTooLong(line=line))
    for name, each in zip(header, cells, strict=False):
        if not name:
            continue
        cell = _trimmed(each)
        try:
            row.cells[name] = _text(cell, line, name)
        except (errors.TableFormula, errors.TableCellTooLong) as refusal:
            row.cells[name] = cell[:LONGEST_CELL]
            row.refusals.append(refusal)
    return row


def _text(cell: str, line: int, column: str) -> str:
    if len(cell) > LONGEST_CELL:
        raise errors.TableCellTooLong(line=line, column=column, most=LONGEST_CELL)
    if cell.startswith(_REFUSED) and begins_like_a_formula(cell.removeprefix(_REFUSED)):
        raise errors.TableFormula(line=line, column=column)
    if cell.startswith(_APOSTROPHE) and begins_like_a_formula(cell[1:]):
        return cell[1:]
    if begins_like_a_formula(cell) and not _NUMBER.fullmatch(cell):
        raise errors.TableFormula(line=line, column=column)
    return cell
