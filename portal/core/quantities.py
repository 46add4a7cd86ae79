"""Read numbers, rates and sizes as people and spreadsheets write them.

The same rules apply to pages, imports and commands:

* Spaces, apostrophes and underscores separate groups of three digits.
* If a text contains both a comma and a point, the last of them is the decimal sign. A comma or point that
  occurs twice separates groups.
* ``1,000`` is a thousand in English, and one in German. A file has no language, so ``1.000`` and ``1,000``
  are ambiguous there. ``QuantityAmbiguous`` then names both readings.
* Prefixes are decimal and can be written in either case: k, M, G, and T for rates. The prefixes of ``KiB``,
  ``MiB`` and ``GiB`` are binary.
* A rate is in bits per second, and a size is in bytes. ``B`` in a rate (``MB/s``) and ``b`` in a size
  (``kb``) are ambiguous.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from portal.core.errors import DomainError

# The value of ``sign`` if the language of the text is not known, as in a file.
UNKNOWN = ""
_LONGEST = 40
_LARGEST_ID = 2**63 - 1
_MINUS = "-\N{MINUS SIGN}"
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BITS_IN_A_BYTE = 8

_WRITTEN = re.compile(r"([+\-\N{MINUS SIGN}]?)([0-9][0-9.,' _]*|[.,][0-9]+) *([A-Za-z/]*)", re.ASCII)
_RATE_UNIT = re.compile(r"([kmgt]?)(?:(bits?|b|bytes?)?(?:/s|/sec|ps)?)", re.ASCII | re.IGNORECASE)
_SIZE_UNIT = re.compile(r"([kmg]?)(i?)(b|bytes?|octets?)?", re.ASCII | re.IGNORECASE)
_GROUPS = re.compile(r"[1-9][0-9]{0,2}(?:([,.' _])[0-9]{3})(?:\1[0-9]{3})*", re.ASCII)
# Numbers whose sign can separate groups or begin decimals. In 0.125 and 2.5, it always begins decimals.
_EITHER = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}", re.ASCII)


class NumberUnreadable(DomainError):
    """The text is not a number."""

    text = _("“{value}” is not a number. Enter digits, such as 100 or 2.5.")
    value: str
    field: str = ""


class RateUnreadable(DomainError):
    """The text is not a rate of whole bits per second."""

    text = _(
        "“{value}” is not a rate. Enter a number such as 100, or a number with its unit, such as 50M,"
        " 50 Mbps or 1.5 Gbit/s. The rate is at least 0 and has no fraction of a bit."
    )
    value: str
    field: str = ""


class SizeUnreadable(DomainError):
    """The text is not a size of whole bytes."""

    text = _(
        "“{value}” is not a size. Enter a whole number of bytes such as 9000, or a number with its unit, such"
        " as 64 kB or 64 KiB."
    )
    value: str
    field: str = ""


class QuantityAmbiguous(DomainError):
    """The text has two meanings. ``readings`` contains both, each written without ambiguity."""

    value: str
    readings: list[str]
    field: str = ""

    @property
    def sentence(self) -> str:
        text = _("“{value}” can be read in two ways. Enter {first} or {second}.")
        return self.filled(text, first=self.readings[0], second=self.readings[1])


@dataclass(frozen=True, slots=True)
class Quantity:
    """A ``number`` and its ``unit``, as a factor to bit/s or bytes; None if the text contains no unit."""

    number: Decimal
    unit: int | None
    written: str

    def of(self, unit: int) -> Decimal:
        """Return the quantity in bit/s or bytes. ``unit``: the factor to use if the text contains no unit."""
        return self.number * (self.unit or unit)


def read_number(text: str, *, sign: str, most: Decimal | None = None) -> Decimal:
    """Read a number without a unit.

    ``sign``: the decimal sign of the reader's language, or UNKNOWN. ``most``: the largest valid number. If
    one reading of an ambiguous text is larger, the other reading is used. Raises NumberUnreadable or
    QuantityAmbiguous.
    """
    number, unit = _split(text, NumberUnreadable)
    if unit:
        raise NumberUnreadable(value=text[:_LONGEST])
    return _decimal(text, number, "", sign=sign, kind=NumberUnreadable, most=most)


def read_rate(text: str, *, sign: str = UNKNOWN) -> Quantity:
    """Read a rate such as ``1.5G`` or ``50 Mbps``. Raises RateUnreadable or QuantityAmbiguous."""
    number, unit = _split(text, RateUnreadable)
    known = _RATE_UNIT.fullmatch(unit)
    if known is None:
        raise RateUnreadable(value=text[:_LONGEST])
    prefix, counted = known[1], known[2] or ""
    value = _decimal(text, number, unit, sign=sign, kind=RateUnreadable)
    factor = _PREFIXES[prefix.lower()]
    if counted == "B":
        _ambiguous(
            text,
            f"{_plain(value, sign)} {_shown(prefix)}bit/s",
            f"{_plain(value * _BITS_IN_A_BYTE, sign)} {_shown(prefix)}bit/s",
        )
    if counted.lower().startswith("byte"):
        factor *= _BITS_IN_A_BYTE
    return Quantity(value, factor if unit else None, text)


def read_size(text: str, *, sign: str = UNKNOWN) -> Quantity:
    """Read a size such as ``9000``, ``9000 bytes`` or ``64 KiB``. Raises SizeUnreadable or
    QuantityAmbiguous.
    """
    number, unit = _split(text, SizeUnreadable)
    known = _SIZE_UNIT.fullmatch(unit)
    if known is None or (known[2] and not known[1]):
        raise SizeUnreadable(value=text[:_LONGEST])
    prefix, binary, counted = known[1].lower(), bool(known[2]), known[3] or ""
    value = _decimal(text, number, unit, sign=sign, kind=SizeUnreadable)
    factor = _PREFIXES[prefix]
    if binary:
        factor = {10**3: 2**10, 10**6: 2**20, 10**9: 2**30}[factor]
    if counted == "b":
        shown = f"{known[1]}{known[2]}B"
        _ambiguous(
            text,
            f"{_plain(value, sign)} {shown}",
            f"{_plain(value / _BITS_IN_A_BYTE, sign)} {shown}",
        )
    return Quantity(value, factor if unit else None, text)


def whole_rate(text: str, *, sign: str = UNKNOWN) -> int:
    """Return a rate as a whole number of bit/s. A number without a unit is in bit/s.

    Raises QuantityAmbiguous or RateUnreadable. A negative rate or a fraction of a bit is unreadable too.
    """
    return _whole(read_rate(text, sign=sign), RateUnreadable)


def whole_size(text: str, *, sign: str = UNKNOWN) -> int:
    """Return a size as a whole number of bytes. A number without a unit is in bytes.

    Raises QuantityAmbiguous or SizeUnreadable. A negative size or a fraction of a byte is unreadable too.
    """
    return _whole(read_size(text, sign=sign), SizeUnreadable)


def _whole(quantity: Quantity, kind: type[RateUnreadable | SizeUnreadable]) -> int:
    value = quantity.of(1)
    if value < 0 or value != int(value):
        raise kind(value=quantity.written[:_LONGEST])
    return int(value)


def written_back(number: str, *, sign: str) -> str:
    """Return a number in Python's notation as a form shows it, with the decimal sign ``sign``.

    ``read_number`` reads the same number from the result.
    """
    shown = number.replace(".", sign)
    # With another zero, four digits follow the point, so they cannot be a group of three.
    return f"{shown}0" if sign == "." and _EITHER.fullmatch(shown.lstrip("-")) else shown


def _split(text: str, kind: type[NumberUnreadable | RateUnreadable | SizeUnreadable]) -> tuple[str, str]:
    """Return the number (with its minus sign) and the unit as texts."""
    spaced = "".join(" " if each.isspace() else each for each in text.strip()).replace(
        "\N{RIGHT SINGLE QUOTATION MARK}", "'"
    )
    found = _WRITTEN.fullmatch(spaced) if len(spaced) <= _LONGEST else None
    if found is None:
        raise kind(value=text[:_LONGEST])
    minus = "-" if found[1] and found[1] in _MINUS else ""
    return minus + found[2].rstrip(), found[3]


def _decimal(
    text: str,
    number: str,
    unit: str,
    *,
    sign: str,
    kind: type[NumberUnreadable | RateUnreadable | SizeUnreadable],
    most: Decimal | None = None,
) -> Decimal:
    minus, body = ("-", number[1:]) if number.startswith("-") else ("", number)
    if _EITHER.fullmatch(body):
        thousands = Decimal(minus + body.replace(".", "").replace(",", ""))
        decimals = Decimal(minus + body.replace(",", "."))
        if "," in body and sign:
            return decimals if sign == "," else thousands
        if most is not None and abs(thousands) > most:
            return decimals
        spaced = f" {unit}" if unit else ""
        _ambiguous(text, _plain(decimals, sign) + spaced, _plain(thousands, sign) + spaced)
    if _GROUPS.fullmatch(body):
        return Decimal(minus + re.sub(r"[^0-9]", "", body))
    last = max(body.rfind("."), body.rfind(","))
    whole, fraction = (body, "") if last < 0 else (body[:last], body[last + 1 :])
    groups = _GROUPS.fullmatch(whole)
    if not ((whole + fraction).isdigit() or (groups and groups[1] != body[last] and fraction.isdigit())):
        raise kind(value=text[:_LONGEST])
    return Decimal(f"{minus}{re.sub(r'[^0-9]', '', whole) or '0'}.{fraction or '0'}").normalize()


def _ambiguous(text: str, *readings: str) -> NoReturn:
    raise QuantityAmbiguous(value=text.strip()[:_LONGEST], readings=list(readings))


def _plain(number: Decimal, sign: str) -> str:
    return written_back(f"{number.normalize():f}", sign=sign or ".")


def _shown(prefix: str) -> str:
    """Return a prefix in the notation of the SI."""
    return "k" if prefix in ("k", "K") else prefix.upper()


def whole_number(text: str, *, most: int) -> int | None:
    """Return the number in a text of ASCII digits; None for any other text and for a number above ``most``.

    Python's ``int`` alone would raise ValueError for more than 4,300 digits, even if all are zeros. The check
    for ASCII is necessary because ``isdigit`` accepts digits such as ², which ``int`` refuses.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if number <= most else None


def row_id(text: Any) -> int | None:
    """Return the id of a row in a text of a request; None if the text is not an id."""
    return whole_number(str(text or ""), most=_LARGEST_ID)


def uuid_of(text: str) -> UUID | None:
    """Return the UUID in a text; None if the text is not a UUID."""
    try:
        return UUID(text)
    except ValueError:
        return None


class WholeNumberField(forms.IntegerField):
    """A form field for a whole number of digits. Django's own field also accepts decimals: ``9.000`` is 9."""

    pattern = re.compile(r"\s*[+-]?\d+\s*")

    def to_python(self, value: Any) -> int | None:
        if isinstance(value, str) and value and not self.pattern.fullmatch(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)
