"""Reasons why a row or a whole import is refused, and the form in which the refusals of rows are stored.

``field`` is the column; "" means the whole row.
"""

from dataclasses import fields
from functools import cache
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.core.errors import Conflict, DomainError, TooSoon, error_types
from portal.core.reader_texts import in_english, stored_text_shown

_UNKNOWN = {
    "site": _("There is no site “{name}”. Correct the name, or import the site first."),
    "router": _("There is no router “{name}”. Correct the name, or import the router first."),
    "customer": _("There is no customer “{name}”. Correct the name, or import the customer first."),
    "port": _("There is no port “{name}”. Correct the name, or import the port first."),
}

_OVER = {
    "terminated": _(
        "This line is terminated; importing the row would order it again. Remove the row, or empty"
        " this cell to order the line again."
    ),
    "cancelled": _(
        "This line was cancelled; importing the row would order it again. Remove the row, or empty"
        " this cell to order the line again."
    ),
}

_NOT_NOW = {
    "checking": _("The file is still being checked. Wait until that is done."),
    "checked": _("The file is checked, and nothing of it is imported yet. Reload the page."),
    "importing": _("The import is already running. Reload the page to see how far it is."),
    "completed": _("The import is over: there is nothing left to import or to stop."),
    "cancelled": _("The import was cancelled. Upload the file again to import the rest."),
}


class CellMissing(DomainError):
    """A required column is empty."""

    text = _("“{column}” is empty. Fill it in: every row needs a value in this column.")
    column: str
    field: str


class CellUnreadable(DomainError):
    """The text of the cell, ``value``, has not the form of the column."""

    code = ""
    value: str
    field: str


class CellNotANumber(CellUnreadable):
    """The cell is not a whole number of at least 0."""

    text = _(
        "“{value}” is not a whole number. Write only digits, such as 1000000000: without unit, point"
        " or exponent."
    )


class CellNotDegrees(CellUnreadable):
    """The cell is not a number of degrees."""

    text = _(
        "“{value}” is not a number of degrees. Write a number such as 47.3769, with at most six"
        " decimal places."
    )


class CellNotYesOrNo(CellUnreadable):
    """The cell is neither yes nor no."""

    text = _("“{value}” is neither yes nor no. Write one of the two.")


class CellNotOneOf(CellUnreadable):
    """The value of the cell is not one of ``choices``."""

    text = _("“{value}” is not possible here. Write one of these: {choices}.")
    choices: list[str]


class CellNotAnAddress(CellUnreadable):
    """The cell is not an IP address of the required family (4 or 6)."""

    text = _("“{value}” is not an IPv{family} address. Write it without prefix length, or leave it empty.")
    family: int


class CellNotAnEmail(CellUnreadable):
    """The cell is not an e-mail address."""

    text = _("“{value}” is not an e-mail address. Correct it.")


class CellNotAUrl(CellUnreadable):
    """The cell is not an https address."""

    text = _("“{value}” is not an address that begins with https://. Correct it, or leave it empty.")


class CellNotARouterName(CellUnreadable):
    """The cell cannot be a router's name, because it must fit into a certificate."""

    text = _("“{value}” cannot be a router’s name. Use a–z, 0–9 and hyphens, 63 at most.")


class CellNotAPort(CellUnreadable):
    """The cell is not a router and an interface with a colon between them."""

    text = _(
        "“{value}” is not a port. Write router and interface with a colon between them, such as"
        " rhino:TenGigabitEthernet3/0/0."
    )


class CellTextTooLong(DomainError):
    """The text has too many characters."""

    text = _("The text has {length} characters. Shorten it to {most}.")
    most: int
    length: int
    field: str


class CellNotPlain(DomainError):
    """The text has invisible characters that change the display of the surrounding text. ``named``: the first
    of these characters.
    """

    text = _(
        "The text contains invisible characters ({named}) that change how the text around them is shown. "
        "Type the text again."
    )
    named: str
    field: str


class LineIsOver(DomainError):
    """The row comes from the portal's own list and describes a line that has ended."""

    lifecycle: str
    field: str

    @property
    def sentence(self) -> str:
        return str(_OVER[self.lifecycle])


class LineBeingRemoved(Conflict):
    """The line with this description exists and is being removed."""

    text = _(
        "The line “{description}” is being removed. Undo its removal to keep it; or wait until it is gone,"
        " and import the row again to order it again."
    )
    description: str
    field: str


class NamedNowhere(DomainError):
    """The inventory has no object with this name. ``what``: site, router, customer or port."""

    what: str
    name: str
    field: str

    @property
    def sentence(self) -> str:
        return _UNKNOWN[self.what].format(name=self.name)


class RowTwice(DomainError):
    """An earlier row of the file has the same value in a column with unique values."""

    text = _("Line {line} of the file also has “{value}”, which must be unique. Remove one of the two lines.")
    value: str
    line: int
    field: str


class RowDiffers(Conflict):
    """The object exists with other values.

    ``differences``: for each different value, the column, the value in the portal ("" for none) and the value
    in the file.
    """

    name: str
    differences: list[tuple[str, str, str]]

    @property
    def sentence(self) -> str:
        differences = []
        for column, here, in_file in self.differences:
            if here:
                text = _("{column} is {here} here and {file} in the file")
            else:
                text = _("{column} is empty here and {file} in the file")
            differences.append(text.format(column=column, here=here, file=in_file))
        text = _(
            "{name} already exists, with other values than in the file: {differences}. An import does not"
            " change existing objects. Change it on its page, or correct the file."
        )
        return text.format(name=self.name, differences="; ".join(differences))


class RowNotTaken(Conflict):
    """The row or the database caused an unexpected error. The worker's log has the details."""

    text = _(
        "An unexpected error stopped the import of this row. The worker’s log has the error. The other "
        "rows are not affected."
    )


class TableEmpty(DomainError):
    """The file has no row below the header, or nothing at all."""

    text = _("The table has no rows. Fill in at least one below the header.")


class ImportNotAllowed(Conflict):
    """The user who began the import no longer has the required rights."""

    text = _(
        "{username} may no longer do this: the account, its role or its API token has changed. Imported "
        "rows stay. Somebody else can import the rest with the same file."
    )
    username: str


class ImportKeepsFailing(Conflict):
    """Too many consecutive attempts of the import failed. The portal's log has the reason."""

    text = _(
        "This import failed too often. The portal’s log says why. Imported rows stay. When the cause is "
        "fixed, import the rest with the same file."
    )


class ImportIsOver(Conflict):
    """The import is in a state that does not allow this action."""

    state: str

    @property
    def sentence(self) -> str:
        return str(_NOT_NOW[self.state])


_SIDES = {"a_end.": "a_", "z_end.": "z_"}


def refusal_record(error: DomainError) -> dict[str, Any]:
    """Return a refusal in the form in which it is stored: facts for programs, and an English sentence.

    The sentence is for releases that do not know the error.
    """
    with in_english():
        sentence = error.sentence
    column = _column(error.field or getattr(error, "column", ""))
    return {"column": column, "code": error.code, "facts": error.facts, "sentence": sentence}


def sentence(refusal: dict[str, Any]) -> str:
    """Return the sentence of a stored refusal in the reader's language.

    The facts are stored as JSON. Another release may have stored other facts. If no sentence can be made from
    the stored facts, return the stored English sentence.
    """
    kind = _by_code().get(refusal["code"])
    # The facts of TooSoon contain a datetime. JSON has stored only its text.
    if kind is None or issubclass(kind, TooSoon):
        return stored_text_shown(str(refusal["sentence"]))
    try:
        where = {"field": refusal["column"]} if "field" in {each.name for each in fields(kind)} else {}
        return kind(**refusal["facts"], **where).sentence
    except (AttributeError, LookupError, TypeError, ValueError):
        return stored_text_shown(str(refusal["sentence"]))


@cache
def _by_code() -> dict[str, type[DomainError]]:
    return {kind.code: kind for kind in error_types()}


def _column(field: str) -> str:
    """Return the column for a field of an operation: ``a_end.outer_vlan`` of an order is ``a_outer_vlan``."""
    for of_order, of_table in _SIDES.items():
        if field.startswith(of_order):
            return of_table + field.removeprefix(of_order)
    return field
