"""Messages about errors in uploaded files."""

from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS
from portal.uploads import errors

TEXTS |= {
    errors.TableTooLarge: gettext_noop(
        "The file is larger than {max_bytes} bytes. Split it into several files, each with the header."
    ),
    errors.TableTooLong: gettext_noop(
        "The table has more than {max_rows} rows. Split it into several files, each with the header."
    ),
    errors.TableNotText: gettext_noop(
        "Line {line} of the file is neither UTF-8 nor UTF-16. Save the file as “CSV UTF-8” in your "
        "spreadsheet."
    ),
    errors.TableColumnUnknown: gettext_noop(
        "There is no column “{column}” in such a table. Its columns are: {columns}."
    ),
    errors.TableColumnTwice: gettext_noop(
        "The file has the column “{column}” twice. Remove one of the two columns."
    ),
    errors.TableColumnMissing: gettext_noop(
        "The column “{column}” is missing. The first line of the file has to name the columns: {columns}."
    ),
    errors.TableRowTooLong: gettext_noop(
        "Line {line} of the file has more cells than the header has columns. If a text contains a comma, "
        "put the text in quotation marks."
    ),
    errors.TableCellTooLong: gettext_noop(
        "In line {line} of the file, “{column}” has more than {most} characters. Shorten the text. If it "
        "contains whole lines, a quotation mark is not closed."
    ),
    errors.TableFormula: gettext_noop(
        "In line {line} of the file, “{column}” begins like a formula. If you mean it as text, put one "
        "apostrophe before it."
    ),
    errors.TableQuotes: gettext_noop(
        "In the row that begins in line {line} of the file, a quotation mark is not closed, or is inside a "
        'cell. To put a quotation mark into a cell, write it twice: "".'
    ),
    errors.VppcfgUnreadable: gettext_noop(
        "This is not a file of vppcfg: from line {line} on, the file is not valid YAML, or it has no "
        "“interfaces”."
    ),
}
