"""Reading a table as spreadsheets write it (RFC 4180, and what they make of it)."""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from portal.core.csv_text import begins_like_a_formula
from portal.spreadsheets.errors import (
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
_LONGEST_SHOWN = 40
_NUMBER = re.compile(r"[+-]\d+([.,]\d+)?")


@dataclass(frozen=True, slots=True)
class TableRow:
    """``line``: where it begins in the file, from 1. ``cells`` by column, of all columns."""

    line: int
    cells: dict[str, str]


def read_table(
    data: bytes, *, columns: Collection[str], required: Collection[str], max_rows: int
) -> list[TableRow]:
    """The rows below the header; those without any text are passed over.

    The header names some of ``columns``, in any order and in either case, and all that are ``required``; the
    cells of others are "". Cells are parted by commas, semicolons or tabs, as the header's are. An apostrophe
    before what begins like a formula, as our exports have it, is taken off; other formulas are refused, but
    for numbers.
    Raises one of portal.spreadsheets.errors.
    """
    if len(data) > MAX_BYTES:
        raise TableTooLarge(max_bytes=MAX_BYTES)
    text = _decoded(data)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows: list[TableRow] = []
    try:
        header = _header(next(reader, []), columns, required)
        for line, cells in _lines(reader):
            if len(rows) == max_rows:
                raise TableTooLong(max_rows=max_rows)
            rows.append(_row(line, cells, header, columns))
    except csv.Error:
        raise TableQuotes(line=reader.line_num) from None
    return rows


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
    header = text.partition("\n")[0]
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


def _lines(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Those that have a text in them, each with the number of its first line."""
    begins = reader.line_num + 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield begins, cells
        begins = reader.line_num + 1


def _row(line: int, cells: list[str], header: list[str], columns: Collection[str]) -> TableRow:
    if len(cells) > len(header):
        raise TableRowTooLong(line=line)
    told = {name: _text(cell.strip(), line, name) for name, cell in zip(header, cells, strict=False)}
    return TableRow(line, dict.fromkeys(columns, "") | told)


def _text(cell: str, line: int, column: str) -> str:
    if cell.startswith(_APOSTROPHE) and begins_like_a_formula(cell[1:]):
        return cell[1:]
    if begins_like_a_formula(cell) and not _NUMBER.fullmatch(cell):
        raise TableFormula(line=line, column=column)
    return cell
