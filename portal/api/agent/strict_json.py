"""Strict decoding of reports: what the contract does not name is refused, and every error is told at once."""

import ipaddress
import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from portal.core.lazy_json_list import LazyList

Decode = Callable[[Any, str, "Errors"], Any]
# A whole body: what it says, or None after an error. Raises ``Malformed``.
Read = Callable[[bytes, "Errors"], Any]

# What PostgreSQL's bigint and a Go int64 hold.
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_MAX_ERRORS = 100


class Errors(list[dict[str, str]]):
    """``{"pointer", "code", "detail"}`` of each violation (RFC 6901 pointers).

    ``known``: the digests of lists that have been found valid, by the pointers at which they stood.
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.known = known or {}

    def add(self, pointer: str, code: str, detail: str) -> None:
        if len(self) < _MAX_ERRORS:
            self.append({"pointer": pointer, "code": code, "detail": detail})


class Malformed(ValueError):
    """The body is not one JSON object."""


def document(decode: Decode) -> Read:
    """Reads a body that is one JSON object."""

    def read(body: bytes, errors: Errors) -> Any:
        try:
            value = json.loads(body, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise Malformed(str(error)) from error
        if not isinstance(value, dict):
            raise Malformed("the body is no JSON object")
        return decode(value, "", errors)

    return read


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def record(fields: Mapping[str, Decode], *, later: Mapping[str, tuple[Decode, Any]] | None = None) -> Decode:
    """An object with exactly these members; decodes to a dict, or None after an error.

    ``later`` are members that the contract got after its first release, each with what is taken to hold of
    an agent that does not know them yet.
    """
    later = later or {}

    def decode(value: Any, at: str, errors: Errors) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            errors.add(at, "type", "an object is wanted")
            return None
        for name in value.keys() - fields.keys() - later.keys():
            errors.add(f"{at}/{name}", "unknown_field", "the contract does not name this field")
        decoded = {}
        for name, field in fields.items():
            if name in value:
                decoded[name] = field(value[name], f"{at}/{name}", errors)
            else:
                errors.add(f"{at}/{name}", "missing", "this field is required")
        for name, (field, otherwise) in later.items():
            decoded[name] = field(value[name], f"{at}/{name}", errors) if name in value else otherwise
        return decoded

    return decode


def array(item: Decode, *, maximum: int, unique: str = "") -> Decode:
    """A list of at most ``maximum``; ``unique`` names the member that may not repeat."""

    def decode(value: Any, at: str, errors: Errors) -> tuple[Any, ...]:
        if not isinstance(value, list):
            errors.add(at, "type", "a list is wanted")
            return ()
        if len(value) > maximum:
            errors.add(at, "out_of_range", f"at most {maximum} are taken")
            return ()
        decoded = tuple(item(entry, f"{at}/{index}", errors) for index, entry in enumerate(value))
        if unique:
            _require_unique(decoded, unique, at, errors)
        return decoded

    return decode


def lazily(item: Decode, make: Callable[[Any], Any], *, maximum: int) -> Decode:
    """As ``array``, and each item is what ``make`` makes of it. A list that is known to be valid is not gone
    through again: its items are decoded where somebody looks into it. ``{"etag": ...}`` stands for the list
    that was stored under that name."""
    checked = array(item, maximum=maximum)
    by_name = record({"etag": text(maximum=64)})

    def decode(value: Any, at: str, errors: Errors) -> LazyList[Any]:
        if isinstance(value, dict):
            named = by_name(value, at, errors)
            return LazyList.named(named.get("etag") or "")
        if isinstance(value, list):
            lazy = LazyList(value, lambda entry: make(item(entry, at, Errors())))
            if errors.known.get(at) == lazy.digest:
                return lazy
        before = len(errors)
        decoded = checked(value, at, errors)
        if len(errors) > before:
            return LazyList((), make)
        return LazyList(value, lambda entry: make(item(entry, at, Errors())), tuple(map(make, decoded)))

    return decode


def _require_unique(decoded: tuple[Any, ...], member: str, at: str, errors: Errors) -> None:
    seen = set()
    for index, entry in enumerate(decoded):
        key = entry.get(member) if entry else None
        if key is not None and key in seen:
            errors.add(f"{at}/{index}/{member}", "duplicate", f"{key!r} stands twice")
        seen.add(key)


def nullable(decode_value: Decode) -> Decode:
    """null, or what ``decode_value`` takes."""
    return lambda value, at, errors: None if value is None else decode_value(value, at, errors)


def integer(minimum: int = _MIN_INT, maximum: int = _MAX_INT) -> Decode:
    """A whole number within these bounds."""

    def decode(value: Any, at: str, errors: Errors) -> int | None:
        if type(value) is not int:
            errors.add(at, "type", "a whole number is wanted")
        elif not minimum <= value <= maximum:
            errors.add(at, "out_of_range", f"{value} is not in {minimum}..{maximum}")
        else:
            return value
        return None

    return decode


def boolean(value: Any, at: str, errors: Errors) -> bool | None:
    if type(value) is not bool:
        errors.add(at, "type", "true or false is wanted")
        return None
    return value


def text(*, maximum: int) -> Decode:
    """A string of at most ``maximum`` printable characters: PostgreSQL takes no NUL and no lone surrogate."""

    def decode(value: Any, at: str, errors: Errors) -> str | None:
        if not isinstance(value, str):
            errors.add(at, "type", "a string is wanted")
        elif len(value) > maximum or not value.isprintable():
            errors.add(at, "out_of_range", f"at most {maximum} printable characters")
        else:
            return value
        return None

    return decode


def foreign_text(*, maximum: int) -> Decode:
    """A string that somebody else wrote into VPP: cut at ``maximum``, U+FFFD for what cannot be printed.

    Never refused for its characters: one odd tag must not cost a router's whole report.
    """

    def decode(value: Any, at: str, errors: Errors) -> str | None:
        if not isinstance(value, str):
            errors.add(at, "type", "a string is wanted")
            return None
        return "".join(each if each.isprintable() else "\ufffd" for each in value[:maximum])

    return decode


def name(value: Any, at: str, errors: Errors) -> str | None:
    """A string as it is, for a caller who keeps only what a name may be."""
    if not isinstance(value, str):
        errors.add(at, "type", "a string is wanted")
        return None
    return value


def one_of(*allowed: Any) -> Decode:
    """One of these values."""

    def decode(value: Any, at: str, errors: Errors) -> Any:
        if type(value) is not type(allowed[0]):
            errors.add(at, "type", f"one of {', '.join(map(str, allowed))} is wanted")
        elif value not in allowed:
            errors.add(at, "unknown_value", f"{value!r} is none of {', '.join(map(str, allowed))}")
        else:
            return value
        return None

    return decode


def uuid(value: Any, at: str, errors: Errors) -> UUID | None:
    """A UUID in lower case with dashes."""
    try:
        parsed = UUID(value)
    except (ValueError, TypeError, AttributeError):
        errors.add(at, "type", "a UUID is wanted")
        return None
    if str(parsed) != value:
        errors.add(at, "out_of_range", "a UUID is written in lower case with dashes")
        return None
    return parsed


def address(value: Any, at: str, errors: Errors) -> str | None:
    """An IP address in canonical text form."""
    return _canonical(ipaddress.ip_address, value, at, errors)


def prefixed_address(value: Any, at: str, errors: Errors) -> str | None:
    """An IP address with its prefix length."""
    return _canonical(ipaddress.ip_interface, value, at, errors)


def _canonical(read: Callable[[str], Any], value: Any, at: str, errors: Errors) -> str | None:
    try:
        canonical = str(read(value)) if isinstance(value, str) else None
    except ValueError:
        canonical = None
    # A zone ("%eth0") names an interface of somebody's own machine; PostgreSQL stores none.
    if canonical is None or canonical != value or "%" in value:
        errors.add(at, "type", "an address in canonical form is wanted")
        return None
    return canonical
