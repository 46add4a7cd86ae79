"""Read numbers, rates and sizes as people and spreadsheets write them.

One set of rules for pages, imports and commands:

* Spaces, apostrophes and underscores separate groups of three digits.
* If a text contains a comma and a point, the last one begins the decimals. A sign that occurs twice separates
  groups.
* ``1,000`` is a thousand in English and one in German. In a file, which has no language, ``1.000`` and
  ``1,000`` are ambiguous. ``QuantityAmbiguous`` then names the alternatives.
* Prefixes are decimal (k, M, G, T), in either case. Only ``KiB`` and ``MiB`` are binary.
* A rate counts bits and a size bytes. A lone letter with the other meaning (``MB/s``, ``kb``) is ambiguous.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from portal.core.errors import DomainError

# The decimal sign of a file, which has no language.
UNKNOWN = ""
_LONGEST = 40
_MINUS = "-\N{MINUS SIGN}"
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BITS_IN_A_BYTE = 8

_WRITTEN = re.compile(r"([+\-\N{MINUS SIGN}]?)([0-9][0-9.,' _]*|[.,][0-9]+) *([A-Za-z/]*)", re.ASCII)
_RATE_UNIT = re.compile(r"([kmgt]?)(?:(bits?|b|bytes?)?(?:/s|/sec|ps)?)", re.ASCII | re.IGNORECASE)
_SIZE_UNIT = re.compile(r"([kmg]?)(i?)(b|bytes?|octets?)?", re.ASCII | re.IGNORECASE)
_GROUPS = re.compile(r"[1-9][0-9]{0,2}(?:([,.' _])[0-9]{3})(?:\1[0-9]{3})*", re.ASCII)
# Only these can be groups or decimals. 0.125 and 2.5 are always decimals.
_EITHER = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}", re.ASCII)


class NumberUnreadable(DomainError):
    """The text is not a number."""

    value: str
    field: str = ""


class RateUnreadable(DomainError):
    """The text is not a rate of whole bits per second."""

    value: str
    field: str = ""


class SizeUnreadable(DomainError):
    """The text is not a size of whole bytes."""

    value: str
    field: str = ""


class QuantityAmbiguous(DomainError):
    """The text has two meanings. ``readings`` contains both, each written without ambiguity."""

    value: str
    readings: list[str]
    field: str = ""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A ``number`` with its ``unit`` (bit/s or bytes); ``unit`` is None if the text contains none."""

    number: Decimal
    unit: int | None
    written: str

    def of(self, unit: int) -> Decimal:
        """Return the quantity in bit/s or bytes; ``unit`` applies if the text contains none."""
        return self.number * (self.unit or unit)


def read_number(text: str, *, sign: str, most: Decimal | None = None) -> Decimal:
    """Read a number without a unit.

    ``sign`` is the decimal sign of the reader's language, or UNKNOWN. ``most`` excludes larger readings of an
    ambiguous text. Raises NumberUnreadable, QuantityAmbiguous.
    """
    number, unit = _split(text, NumberUnreadable)
    if unit:
        raise NumberUnreadable(value=text[:_LONGEST])
    return _decimal(text, number, "", sign=sign, kind=NumberUnreadable, most=most)


def read_rate(text: str, *, sign: str = UNKNOWN) -> Quantity:
    """Read a rate: ``1.5G``, ``50 Mbps``, ``1,000``. Raises RateUnreadable, QuantityAmbiguous."""
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
    """Read a size: ``9000``, ``9,000 bytes``, ``64 KiB``. Raises SizeUnreadable, QuantityAmbiguous."""
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
    """Return the rate in bit/s, which is also the default unit.

    Raises RateUnreadable, also for a part of a bit or a negative rate; QuantityAmbiguous.
    """
    bps = read_rate(text, sign=sign).of(1)
    if bps < 0 or bps != int(bps):
        raise RateUnreadable(value=text[:_LONGEST])
    return int(bps)


def whole_size(text: str, *, sign: str = UNKNOWN) -> int:
    """Return the size in bytes.

    Raises SizeUnreadable, also for a part of a byte or a negative size; QuantityAmbiguous.
    """
    size = read_size(text, sign=sign).of(1)
    if size < 0 or size != int(size):
        raise SizeUnreadable(value=text[:_LONGEST])
    return int(size)


def written_back(number: str, *, sign: str) -> str:
    """Return a number of Python as a form shows it: ``read_number`` reads the same number from it."""
    shown = number.replace(".", sign)
    # With one more zero, the digits after the sign cannot be a group of three.
    return f"{shown}0" if sign == "." and _EITHER.fullmatch(shown.lstrip("-")) else shown


def _split(text: str, kind: type[NumberUnreadable | RateUnreadable | SizeUnreadable]) -> tuple[str, str]:
    """Return the number, with its sign, and the unit."""
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
    """Return a prefix as the SI writes it."""
    return "k" if prefix in ("k", "K") else prefix.upper()
