"""The sentences of imports: what is wrong in a cell, a row, or with an import."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core.errors import TEXTS, wording
from portal.imports import errors

TEXTS |= {
    errors.CellMissing: gettext_noop("“{column}” is empty. Fill it in: a row cannot do without it."),
    errors.CellNotANumber: gettext_noop(
        "“{value}” is not a whole number. Write all digits and nothing else, such as 1000000000: without"
        " unit, point or exponent."
    ),
    errors.CellNotDegrees: gettext_noop(
        "“{value}” is not a number of degrees. Write it such as 47.3769, at most six decimal places."
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
        "“{value}” names no port. Write router and interface with a colon between them, such as"
        " rhino:TenGigabitEthernet3/0/0."
    ),
    errors.CellTextTooLong: gettext_noop("It has {length} characters. Shorten it to {most}."),
    errors.CellNotPlain: gettext_noop(
        "It contains invisible characters ({named}) that change how the text around them is shown. Type the"
        " text again."
    ),
    errors.LineIsOver: gettext_noop(
        "This line is {lifecycle}, and would be ordered anew. Take the row out; or empty this cell to have it"
        " ordered."
    ),
    errors.LineBeingRemoved: gettext_noop(
        "The line “{description}” is being removed. Undo its removal to keep it; or wait until it is gone,"
        " and import the row again to have it ordered anew."
    ),
    errors.RowTwice: gettext_noop(
        "Line {line} has “{value}” as well, and there can be one only. Take one of the two lines out."
    ),
    errors.RowNotTaken: gettext_noop(
        "An unexpected error stopped this row; the worker’s log says which. The other rows are not affected."
    ),
    errors.TableEmpty: gettext_noop("There are no rows below the header. Fill in at least one."),
    errors.ImportNotAllowed: gettext_noop(
        "{username} may no longer do this: the account, its role or its API token has changed. What is"
        " imported stays. Somebody else can import the rest with the same file."
    ),
    errors.ImportIsOver: gettext_noop(
        "The import has gone on meanwhile (it is {state}): this is not possible any more. Look at it again."
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
def _differs(error: errors.RowDiffers) -> str:
    text = _(
        "{name} is there already, with other values than in the file: {differences}. An import changes"
        " nothing that is there. Change it on its page, or correct the file."
    )
    return text.format(name=error.name, differences=", ".join(error.differences))
