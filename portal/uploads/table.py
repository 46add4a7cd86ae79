"""Reading a table as spreadsheets write it (RFC 4180, and what they make of it)."""

import codecs
import csv
import io
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from portal.core.csv_text import begins_like_a_formula
from portal.core.errors import DomainError
from portal.uploads.errors import (
    TableCellTooLong,
    TableColumnMissing,
    TableColumnTwice,
    TableColumnUnknown,
    TableFormula,
    TableNotText,
    TableQuotes,
    TableRowTooLong,
    TableTooLarge,
    TableTooLong,
)

MAX_BYTES = 8 * 1024 * 1024
_DELIMITERS = ",;\t"
_APOSTROPHE = "'"
# Before a formula that was refused: no spreadsheet calculates it, and we do not take it for text.
_REFUSED = 2 * _APOSTROPHE
# No text of the portal's is longer; names have 100 at most.
LONGEST_CELL = 500
_LONGEST_SHOWN = 40
# Those that the csv module knows: Excel for the Mac writes the first of them.
_LINE_END = re.compile(r"[\r\n]")
_NUMBER = re.compile(r"[+-]\d+([.,]\d+)?")


@dataclass(frozen=True, slots=True)
class TableRow:
    """``line``: where it begins in the file, from 1. ``cells`` by column, of all columns.

    ``refusals``: what is wrong with it as a row of a table; then its cells are as they stand in the file, and
    ``surplus`` has those for which there are no columns. Written again by ``refused_again`` it is refused
    again.
    """

    line: int
    cells: dict[str, str]
    surplus: list[str] = field(default_factory=list)
    refusals: list[DomainError] = field(default_factory=list)


def read_table(
    data: bytes, *, columns: Collection[str], required: Collection[str], max_rows: int
) -> list[TableRow]:
    """``table_rows`` of a table that is taken whole: raises the first refusal of any row as well."""
    rows = table_rows(data, columns=columns, required=required, max_rows=max_rows)
    for row in rows:
        for refusal in row.refusals:
            raise refusal
    return rows


def table_rows(
    data: bytes, *, columns: Collection[str], required: Collection[str], max_rows: int
) -> list[TableRow]:
    """The rows below the header; those without any text are passed over.

    The header names some of ``columns``, in any order and in either case, and all that are ``required``; the
    cells of others are "". Cells are parted by commas, semicolons or tabs, as the header's are. An apostrophe
    before what begins like a formula, as our exports have it, is taken off; other formulas, and those with
    two of them, are refused, but for numbers.
    Raises one of portal.uploads.errors where no row can be read for sure.
    """
    if len(data) > MAX_BYTES:
        raise TableTooLarge(max_bytes=MAX_BYTES)
    text = _decoded(data)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows: list[TableRow] = []
    begins = 1
    try:
        header = _header(next(reader, []), columns, required)
        begins = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                if len(rows) == max_rows:
                    raise TableTooLong(max_rows=max_rows)
                rows.append(_row(begins, cells, header, columns))
            begins = reader.line_num + 1
    except csv.Error:
        # Where the row begins: a quotation mark that is not closed takes all lines below it into its cell.
        raise TableQuotes(line=begins) from None
    return rows


def refused_again(cell: str) -> str:
    """A cell that was refused for a formula, as text that is refused again when it is read."""
    return f"{_REFUSED}{cell}" if begins_like_a_formula(cell) else cell


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise TableNotText(line=data.count(b"\n", 0, error.start) + 1) from None
    if "\0" in text:
        raise TableNotText(line=text.count("\n", 0, text.index("\0")) + 1)
    return text


def _delimiter(text: str) -> str:
    """The one that the header has most of; a comma where it has none."""
    header = _LINE_END.split(text, maxsplit=1)[0]
    return max(_DELIMITERS, key=header.count)


def _header(names: list[str], columns: Collection[str], required: Collection[str]) -> list[str]:
    header = [name.strip().casefold() for name in names]
    listed = ", ".join(columns)
    for name in header:
        if name not in columns:
            raise TableColumnUnknown(column=name[:_LONGEST_SHOWN], columns=listed)
        if header.count(name) > 1:
            raise TableColumnTwice(column=name)
    for name in required:
        if name not in header:
            raise TableColumnMissing(column=name, columns=listed)
    return header


def _row(line: int, cells: list[str], header: list[str], columns: Collection[str]) -> TableRow:
    row = TableRow(line, dict.fromkeys(columns, ""))
    if len(cells) > len(header):
        row.surplus.extend(cell.strip()[:LONGEST_CELL] for cell in cells[len(header) :])
        row.refusals.append(TableRowTooLong(line=line))
    for name, cell in zip(header, cells, strict=False):
        try:
            row.cells[name] = _text(cell.strip(), line, name)
        except (TableFormula, TableCellTooLong) as refusal:
            row.cells[name] = cell.strip()[:LONGEST_CELL]
            row.refusals.append(refusal)
    return row


def _text(cell: str, line: int, column: str) -> str:
    if len(cell) > LONGEST_CELL:
        raise TableCellTooLong(line=line, column=column, most=LONGEST_CELL)
    if cell.startswith(_REFUSED) and begins_like_a_formula(cell.removeprefix(_REFUSED)):
        raise TableFormula(line=line, column=column)
    if cell.startswith(_APOSTROPHE) and begins_like_a_formula(cell[1:]):
        return cell[1:]
    if begins_like_a_formula(cell) and not _NUMBER.fullmatch(cell):
        raise TableFormula(line=line, column=column)
    return cell
