"""Reasons why a row or a whole import is refused. ``field`` is the column; "" means the whole row."""

from portal.core.errors import Conflict, DomainError


class CellMissing(DomainError):
    """A required column is empty."""

    column: str
    field: str


class CellNotANumber(DomainError):
    """The cell is not a whole number of at least 0."""

    value: str
    field: str


class CellNotDegrees(DomainError):
    """The cell is not a number of degrees."""

    value: str
    field: str


class CellNotYesOrNo(DomainError):
    """The cell is neither yes nor no."""

    value: str
    field: str


class CellNotOneOf(DomainError):
    """The value of the cell is not one of ``choices``."""

    value: str
    choices: list[str]
    field: str


class CellNotAnAddress(DomainError):
    """The cell is not an IP address of the required family (4 or 6)."""

    value: str
    family: int
    field: str


class CellNotAnEmail(DomainError):
    """The cell is not an e-mail address."""

    value: str
    field: str


class CellNotAUrl(DomainError):
    """The cell is not an https address."""

    value: str
    field: str


class CellNotARouterName(DomainError):
    """The cell cannot be a router's name, because it must fit into a certificate."""

    value: str
    field: str


class CellNotAPort(DomainError):
    """The cell is not a router and an interface with a colon between them."""

    value: str
    field: str


class CellTextTooLong(DomainError):
    """The text has too many characters."""

    most: int
    length: int
    field: str


class CellNotPlain(DomainError):
    """The text has invisible characters that change the display of the surrounding text. ``named``: the first
    of these characters.
    """

    named: str
    field: str


class LineIsOver(DomainError):
    """The row comes from the portal's own list and describes a line that has ended."""

    lifecycle: str
    field: str


class LineBeingRemoved(Conflict):
    """The line with this description exists and is being removed."""

    description: str
    field: str


class NamedNowhere(DomainError):
    """The inventory has no object with this name. ``what``: site, router, customer or port."""

    what: str
    name: str
    field: str


class RowTwice(DomainError):
    """An earlier row of the file has the same value in a column with unique values."""

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


class RowNotTaken(Conflict):
    """The row or the database caused an unexpected error. The worker's log has the details."""


class TableEmpty(DomainError):
    """The file has no row below the header, or nothing at all."""


class ImportNotAllowed(Conflict):
    """The user who began the import no longer has the required rights."""

    username: str


class ImportKeepsFailing(Conflict):
    """Too many consecutive attempts of the import failed. The portal's log has the reason."""


class ImportIsOver(Conflict):
    """The import is in a state that does not allow this action."""

    state: str
