"""Reasons why an uploaded file is refused. ``line`` counts lines of the file from 1."""

from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError


class TableTooLarge(DomainError):
    """The file has too many bytes."""

    text = _("The file is larger than {max_bytes} bytes. Split it into several files, each with the header.")
    max_bytes: int


class TableTooLong(DomainError):
    """The table has too many rows."""

    text = _("The table has more than {max_rows} rows. Split it into several files, each with the header.")
    max_rows: int


class TableNotText(DomainError):
    """The file is neither UTF-8 nor UTF-16 with a byte order mark."""

    text = _(
        "Line {line} of the file is neither UTF-8 nor UTF-16. Save the file as “CSV UTF-8” in your "
        "spreadsheet."
    )
    line: int


class TableColumnUnknown(DomainError):
    """The header has an unknown column."""

    text = _("There is no column “{column}” in such a table. Its columns are: {columns}.")
    column: str
    columns: str


class TableColumnTwice(DomainError):
    """The header names a column twice."""

    text = _("The file has the column “{column}” twice. Remove one of the two columns.")
    column: str


class TableColumnMissing(DomainError):
    """The header lacks a required column."""

    text = _(
        "The column “{column}” is missing. The first line of the file has to name the columns: {columns}."
    )
    column: str
    columns: str


class TableRowTooLong(DomainError):
    """A row has more cells than the header has columns."""

    text = _(
        "Line {line} of the file has more cells than the header has columns. If a text contains a comma, "
        "put the text in quotation marks."
    )
    line: int


class TableCellTooLong(DomainError):
    """A cell has more characters than any text in the portal may have."""

    text = _(
        "In line {line} of the file, “{column}” has more than {most} characters. Shorten the text. If it "
        "contains whole lines, a quotation mark is not closed."
    )
    line: int
    column: str
    most: int


class TableFormula(DomainError):
    """A cell begins like a formula: a spreadsheet that opens it would calculate it."""

    text = _(
        "In line {line} of the file, “{column}” begins like a formula. If you mean it as text, put one "
        "apostrophe before it."
    )
    line: int
    column: str


class TableQuotes(DomainError):
    """A cell begins but does not end with a quotation mark, or has a quotation mark in the middle."""

    text = _(
        "In the row that begins in line {line} of the file, a quotation mark is not closed, or is inside a "
        'cell. To put a quotation mark into a cell, write it twice: "".'
    )
    line: int


class VppcfgUnreadable(DomainError):
    """The file is not YAML, or has no `interfaces` in the form of vppcfg."""

    text = _(
        "This is not a file of vppcfg: from line {line} on, the file is not valid YAML, or it has no "
        "“interfaces”."
    )
    line: int
