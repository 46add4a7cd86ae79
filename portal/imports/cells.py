"""Readers of cells: they convert a cell's text to a value, or raise an error that names the column."""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from ipaddress import ip_address
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator, URLValidator

from portal.core.errors import DomainError
from portal.core.plain_text import plain_line
from portal.core.quantities import whole_number, whole_rate, whole_size
from portal.imports.errors import (
    CellNotAnAddress,
    CellNotAnEmail,
    CellNotANumber,
    CellNotAPort,
    CellNotARouterName,
    CellNotAUrl,
    CellNotDegrees,
    CellNotOneOf,
    CellNotPlain,
    CellNotYesOrNo,
    CellTextTooLong,
)
from portal.inventory.kinds import is_interface_name
from portal.inventory.pki import is_router_name

# A reader takes the text of a cell, which is not empty, and the name of the column for errors. It returns
# None if the cell counts as empty.
Reader = Callable[[str, str], Any]
NAME, URL = 100, 200
_SHOWN = 60
_LARGEST = 2**53 - 1
_YES, _NO = {"yes", "true", "1"}, {"no", "false", "0"}
_EXPONENT = re.compile(r"[0-9][0-9.,]{0,30}E[+-]?[0-9]{1,3}", re.ASCII | re.IGNORECASE)
_is_email, _is_url = EmailValidator(), URLValidator(schemes=["https"])


def text(most: int = NAME) -> Reader:
    """Return a reader for plain text in one line with at most ``most`` characters."""

    def read(cell: str, column: str) -> str:
        if len(cell) > most:
            raise CellTextTooLong(most=most, length=len(cell), field=column)
        try:
            plain_line(cell)
        except ValidationError as error:
            raise CellNotPlain(named=str(error.params and error.params["named"]), field=column) from None
        return cell

    return read


def whole(cell: str, column: str) -> int:
    """Read a whole number from 0 to 2^53 - 1, written in digits.

    A number such as 1E+10 is refused, because the spreadsheet has lost digits. Raises CellNotANumber.
    """
    number = whole_number(cell, most=_LARGEST)
    if number is None:
        raise CellNotANumber(value=cell[:_SHOWN], field=column)
    return number


def rate(cell: str, column: str) -> int:
    """Read a rate in whole bit/s, with or without a unit. Raises RateUnreadable, QuantityAmbiguous,
    CellNotANumber.
    """
    return _quantity(whole_rate, cell, column)


def size(cell: str, column: str) -> int:
    """Read a size in whole bytes, with or without a unit. Raises SizeUnreadable, QuantityAmbiguous,
    CellNotANumber.
    """
    return _quantity(whole_size, cell, column)


def _quantity(read: Callable[[str], int], cell: str, column: str) -> int:
    try:
        value = read(cell)
    except DomainError as refusal:
        if _EXPONENT.fullmatch(cell):
            # The spreadsheet has written an exponent and has lost digits.
            raise CellNotANumber(value=cell[:_SHOWN], field=column) from None
        refusal.field = column
        raise
    if value > _LARGEST:
        raise CellNotANumber(value=cell[:_SHOWN], field=column)
    return value


def degrees(cell: str, column: str) -> Decimal:
    """Read degrees with a point or a comma and at most six decimal places (a tenth of a metre)."""
    try:
        value = Decimal(cell.replace(",", "."))
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or abs(value) >= 1000:
        raise CellNotDegrees(value=cell[:_SHOWN], field=column)
    rounded = round(value, 6)
    if rounded != value:
        raise CellNotDegrees(value=cell[:_SHOWN], field=column)
    return rounded


def yes_or_no(cell: str, column: str) -> bool:
    """Read yes or no, in the forms that people write and that the portal's exports contain."""
    word = cell.casefold()
    if word not in _YES | _NO:
        raise CellNotYesOrNo(value=cell[:_SHOWN], field=column)
    return word in _YES


def one_of(*choices: str) -> Reader:
    """Return a reader that accepts one of these words. Case does not matter."""
    known = {choice.casefold(): choice for choice in choices}

    def read(cell: str, column: str) -> str:
        if cell.casefold() not in known:
            raise CellNotOneOf(value=cell[:_SHOWN], choices=list(choices), field=column)
        return known[cell.casefold()]

    return read


def address(family: int) -> Reader:
    """Return a reader for an IP address of the family, in a notation that PostgreSQL accepts, too."""

    def read(cell: str, column: str) -> str:
        try:
            found = ip_address(cell)
        except ValueError:
            found = None
        if found is None or found.version != family or "%" in cell:
            raise CellNotAnAddress(value=cell[:_SHOWN], family=family, field=column)
        return str(found)

    return read


def email(cell: str, column: str) -> str:
    try:
        _is_email(cell)
    except ValidationError:
        raise CellNotAnEmail(value=cell[:_SHOWN], field=column) from None
    return str(text(254)(cell, column))


def https_url(cell: str, column: str) -> str:
    try:
        _is_url(cell)
    except ValidationError:
        raise CellNotAUrl(value=cell[:_SHOWN], field=column) from None
    return str(text(URL)(cell, column))


def router_name(cell: str, column: str) -> str:
    if not is_router_name(cell):
        raise CellNotARouterName(value=cell[:_SHOWN], field=column)
    return cell


def port(cell: str, column: str) -> tuple[str, str]:
    """Read a port such as ``rhino:TenGigabitEthernet3/0/0``. Return router and interface.

    Lists and exports of the portal use the same form.
    """
    router, colon, interface = cell.partition(":")
    if not (router and colon and is_interface_name(interface)):
        raise CellNotAPort(value=cell[:_SHOWN], field=column)
    return router, interface
