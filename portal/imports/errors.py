"""Why a row is not taken in, or an import as a whole. ``field`` is the column, or "" for the whole row."""

from portal.core.errors import Conflict, DomainError


class CellMissing(DomainError):
    """A column that every row has to fill in is empty."""

    column: str
    field: str


class CellNotANumber(DomainError):
    """No whole number of at least 0."""

    value: str
    field: str


class CellNotDegrees(DomainError):
    """No number of degrees."""

    value: str
    field: str


class CellNotYesOrNo(DomainError):
    """Neither yes nor no."""

    value: str
    field: str


class CellNotOneOf(DomainError):
    """A word that is none of ``choices``."""

    value: str
    choices: list[str]
    field: str


class CellNotAnAddress(DomainError):
    """No IP address of the family (4 or 6)."""

    value: str
    family: int
    field: str


class CellNotAnEmail(DomainError):
    """No e-mail address."""

    value: str
    field: str


class CellNotAUrl(DomainError):
    """No https address."""

    value: str
    field: str


class CellNotARouterName(DomainError):
    """A router's name has to fit into a certificate."""

    value: str
    field: str


class CellNotAPort(DomainError):
    """Not a router and an interface with a colon between them."""

    value: str
    field: str


class CellTextTooLong(DomainError):
    """More characters than such a text may have."""

    most: int
    length: int
    field: str


class CellNotPlain(DomainError):
    """Invisible characters that change how the text around them is shown. ``named``: the first of them."""

    named: str
    field: str


class LineIsOver(DomainError):
    """The row is of our own list, and of a line that has ended."""

    lifecycle: str
    field: str


class LineBeingRemoved(Conflict):
    """The line of that description is there, but on its way out."""

    description: str
    field: str


class NamedNowhere(DomainError):
    """Nothing of that name is in the inventory. ``what``: site, router, customer or port."""

    what: str
    name: str
    field: str


class RowTwice(DomainError):
    """An earlier line of the file has the same in a column, where each has to have its own."""

    value: str
    line: int
    field: str


class RowDiffers(Conflict):
    """It is there already, with other values.

    ``differences``: column, value here ("" for none) and value in the file of each.
    """

    name: str
    differences: list[tuple[str, str, str]]


class RowNotTaken(Conflict):
    """An error that nobody foresaw, of the row or the database; it is in the worker's log."""


class TableEmpty(DomainError):
    """Below the header is no row, or there is nothing at all."""


class ImportNotAllowed(Conflict):
    """Whoever asked for it has no longer the rights to."""

    username: str


class ImportKeepsFailing(Conflict):
    """The portal failed at it too often in a row; its log says why."""


class ImportIsOver(Conflict):
    """The import does not allow this action in its state."""

    state: str
