"""Reasons why an uploaded file is refused. ``line`` counts lines of the file from 1."""

from portal.core.errors import DomainError


class TableTooLarge(DomainError):
    """The file has too many bytes."""

    max_bytes: int


class TableTooLong(DomainError):
    """The table has too many rows."""

    max_rows: int


class TableNotText(DomainError):
    """The file is neither UTF-8 nor UTF-16 with a byte order mark."""

    line: int


class TableColumnUnknown(DomainError):
    """The header has an unknown column."""

    column: str
    columns: str


class TableColumnTwice(DomainError):
    """The header names a column twice."""

    column: str


class TableColumnMissing(DomainError):
    """The header lacks a required column."""

    column: str
    columns: str


class TableRowTooLong(DomainError):
    """A row has more cells than the header has columns."""

    line: int


class TableCellTooLong(DomainError):
    """A cell has more characters than any text in the portal may have."""

    line: int
    column: str
    most: int


class TableFormula(DomainError):
    """A cell begins like a formula: a spreadsheet that opens it would calculate it."""

    line: int
    column: str


class TableQuotes(DomainError):
    """A cell begins but does not end with a quotation mark, or has a quotation mark in the middle."""

    line: int


class VppcfgUnreadable(DomainError):
    """The file is not YAML, or has no `interfaces` in the form of vppcfg."""

    line: int
