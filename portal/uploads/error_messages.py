"""Messages about errors in uploaded files."""

from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS
from portal.uploads import errors

TEXTS |= {
    errors.TableTooLarge: gettext_noop(
        "The file is larger than {max_bytes} bytes. Cut it into several, each with the header."
    ),
    errors.TableTooLong: gettext_noop(
        "The table has more than {max_rows} rows. Cut it into several, each with the header."
    ),
    errors.TableNotText: gettext_noop(
        "Line {line} is neither UTF-8 nor UTF-16. Save the file as “CSV UTF-8” in your spreadsheet."
    ),
    errors.TableColumnUnknown: gettext_noop(
        "There is no column “{column}” in such a table. Its columns are: {columns}."
    ),
    errors.TableColumnTwice: gettext_noop("The column “{column}” is there twice. Take one of them out."),
    errors.TableColumnMissing: gettext_noop(
        "The column “{column}” is missing. The first line of the file has to name the columns: {columns}."
    ),
    errors.TableRowTooLong: gettext_noop(
        "Line {line} has more cells than the header has columns. Put a text with a comma in it in quotation"
        " marks."
    ),
    errors.TableCellTooLong: gettext_noop(
        "In line {line}, “{column}” has more than {most} characters. Shorten it; if whole lines are in it, a"
        " quotation mark is not closed."
    ),
    errors.TableFormula: gettext_noop(
        "In line {line}, “{column}” begins like a formula. If it is meant as text, put one apostrophe before"
        " it."
    ),
    errors.TableQuotes: gettext_noop(
        "In the row that begins in line {line}, a quotation mark is not closed, or is inside a cell."
        ' Write two for one: "".'
    ),
    errors.VppcfgUnreadable: gettext_noop(
        "This is no file of vppcfg: from line {line} on it is no YAML, or it has no “interfaces”."
    ),
}
