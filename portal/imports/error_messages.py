"""Messages of imports: errors of a cell, of a row, or of a whole import."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS, wording
from portal.imports import errors

TEXTS |= {
    errors.CellMissing: gettext_noop(
        "“{column}” is empty. Fill it in: every row needs a value in this column."
    ),
    errors.CellNotANumber: gettext_noop(
        "“{value}” is not a whole number. Write only digits, such as 1000000000: without unit, point"
        " or exponent."
    ),
    errors.CellNotDegrees: gettext_noop(
        "“{value}” is not a number of degrees. Write a number such as 47.3769, with at most six"
        " decimal places."
    ),
    errors.CellNotYesOrNo: gettext_noop("“{value}” is neither yes nor no. Write one of the two."),
    errors.CellNotAnEmail: gettext_noop("“{value}” is not an e-mail address. Correct it."),
    errors.CellNotAUrl: gettext_noop(
        "“{value}” is not an address that begins with https://. Correct it, or leave it empty."
    ),
    errors.CellNotARouterName: gettext_noop(
        "“{value}” cannot be a router’s name. Use a–z, 0–9 and hyphens, 63 at most."
    ),
    errors.CellNotAPort: gettext_noop(
        "“{value}” is not a port. Write router and interface with a colon between them, such as"
        " rhino:TenGigabitEthernet3/0/0."
    ),
    errors.CellTextTooLong: gettext_noop("The text has {length} characters. Shorten it to {most}."),
    errors.CellNotPlain: gettext_noop(
        "The text contains invisible characters ({named}) that change how the text around them is shown. "
        "Type the text again."
    ),
    errors.LineBeingRemoved: gettext_noop(
        "The line “{description}” is being removed. Undo its removal to keep it; or wait until it is gone,"
        " and import the row again to order it again."
    ),
    errors.RowTwice: gettext_noop(
        "Line {line} of the file also has “{value}”, which must be unique. Remove one of the two lines."
    ),
    errors.RowNotTaken: gettext_noop(
        "An unexpected error stopped the import of this row. The worker’s log has the error. The other "
        "rows are not affected."
    ),
    errors.TableEmpty: gettext_noop("The table has no rows. Fill in at least one below the header."),
    errors.ImportKeepsFailing: gettext_noop(
        "This import failed too often. The portal’s log says why. Imported rows stay. When the cause is "
        "fixed, import the rest with the same file."
    ),
    errors.ImportNotAllowed: gettext_noop(
        "{username} may no longer do this: the account, its role or its API token has changed. Imported "
        "rows stay. Somebody else can import the rest with the same file."
    ),
}

_UNKNOWN = {
    "site": gettext_noop("There is no site “{name}”. Correct the name, or import the site first."),
    "router": gettext_noop("There is no router “{name}”. Correct the name, or import the router first."),
    "customer": gettext_noop(
        "There is no customer “{name}”. Correct the name, or import the customer first."
    ),
    "port": gettext_noop("There is no port “{name}”. Correct the name, or import the port first."),
}

_OVER = {
    "terminated": gettext_noop(
        "This line is terminated; importing the row would order it again. Remove the row, or empty"
        " this cell to order the line again."
    ),
    "cancelled": gettext_noop(
        "This line was cancelled; importing the row would order it again. Remove the row, or empty"
        " this cell to order the line again."
    ),
}

_NOT_NOW = {
    "checking": gettext_noop("The file is still being checked. Wait until that is done."),
    "checked": gettext_noop("The file is checked, and nothing of it is imported yet. Reload the page."),
    "importing": gettext_noop("The import is already running. Reload the page to see how far it is."),
    "completed": gettext_noop("The import is over: there is nothing left to import or to stop."),
    "cancelled": gettext_noop("The import was cancelled. Upload the file again to import the rest."),
}


@wording.register
def _named_nowhere(error: errors.NamedNowhere) -> str:
    return _(_UNKNOWN[error.what]).format(name=error.name)


@wording.register
def _not_one_of(error: errors.CellNotOneOf) -> str:
    text = _("“{value}” is not possible here. Write one of these: {choices}.")
    return text.format(value=error.value, choices=", ".join(error.choices))


@wording.register
def _not_an_address(error: errors.CellNotAnAddress) -> str:
    text = _("“{value}” is not an IPv{family} address. Write it without prefix length, or leave it empty.")
    return text.format(value=error.value, family=error.family)


@wording.register
def _line_is_over(error: errors.LineIsOver) -> str:
    return _(_OVER[error.lifecycle])


@wording.register
def _import_is_over(error: errors.ImportIsOver) -> str:
    return _(_NOT_NOW[error.state])


@wording.register
def _differs(error: errors.RowDiffers) -> str:
    differences = []
    for column, here, in_file in error.differences:
        if here:
            text = _("{column} is {here} here and {file} in the file")
        else:
            text = _("{column} is empty here and {file} in the file")
        differences.append(text.format(column=column, here=here, file=in_file))
    text = _(
        "{name} already exists, with other values than in the file: {differences}. An import does not"
        " change existing objects. Change it on its page, or correct the file."
    )
    return text.format(name=error.name, differences="; ".join(differences))
