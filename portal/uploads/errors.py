"""Why a file that somebody sent is not read. ``line`` counts lines of the file from 1."""

from portal.core.errors import DomainError


class TableTooLarge(DomainError):
    """The file has more bytes than are read."""

    max_bytes: int


class TableTooLong(DomainError):
    """The table has more rows than are taken at a time."""

    max_rows: int


class TableNotText(DomainError):
    """The file is neither UTF-8 nor UTF-16 with a byte order mark."""

    line: int


class TableColumnUnknown(DomainError):
    """The header names a column that there is not."""

    column: str
    columns: str


class TableColumnTwice(DomainError):
    """The header names a column twice."""

    column: str


class TableColumnMissing(DomainError):
    """The header lacks a column that every table of this kind has."""

    column: str
    columns: str


class TableRowTooLong(DomainError):
    """A row has more cells than the header has columns."""

    line: int


class TableCellTooLong(DomainError):
    """A cell has more characters than any text of the portal's."""

    line: int
    column: str
    most: int


class TableFormula(DomainError):
    """A cell begins as formulas do: a spreadsheet that opens it would calculate it."""

    line: int
    column: str


class TableQuotes(DomainError):
    """A quotation mark opens a cell and does not close it, or stands in the middle of one."""

    line: int


class VppcfgUnreadable(DomainError):
    """The file is no YAML with `interfaces`, as vppcfg has it."""

    line: int
