"""JSON read strictly into msgspec's structs: what these do not allow is refused, by its place and why."""

import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address, ip_interface
from typing import Annotated, Any, Self, TypeVar

from msgspec import DecodeError, Meta, ValidationError
from msgspec.json import Decoder

Document = TypeVar("Document")

# How refusals begin (https://jcristharif.com/msgspec/constraints.html, and below); a test sees each.
_CODES = (
    ("Expected `int` ", "out_of_range"),
    ("Expected `str` ", "out_of_range"),
    ("Expected `array` ", "out_of_range"),
    ("Integer value out of range", "out_of_range"),
    ("Number out of range", "out_of_range"),
    ("At most ", "out_of_range"),
    ("Invalid enum value", "unknown_value"),
    ("Object missing required field", "missing"),
    ("Object contains unknown field", "unknown_field"),
)
_OF_A_MEMBER = re.compile(r"Object (?:missing required|contains unknown) field `(.*)`", re.DOTALL)
# A lone surrogate, which is no text (RFC 8259, 8.2). Pairs and other escapes come first: they stay.
_LONE_SURROGATE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

# A UUID in lower case with dashes, which stays the text that came.
Uuid = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
# Counters and rates in bit/s: whole numbers that JavaScript holds too.
Natural53 = Annotated[int, Meta(ge=0, le=2**53)]
# Milliseconds since the epoch of a moment that is kept as one: the calendar ends with the year 9999.
EpochMs = Annotated[int, Meta(ge=0, lt=253_370_764_800_000)]
# What PostgreSQL's integer and bigint hold.
Integer31 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Natural31 = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Positive31 = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Natural63 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive63 = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class Malformed(ValueError):
    """The body is no JSON."""


class Invalid(Exception):
    """The document is not what it has to be; ``fault``: ``pointer`` (RFC 6901), ``code``, ``detail``."""

    def __init__(self, pointer: str, code: str, detail: str) -> None:
        super().__init__(f"{pointer or '/'}: {detail}")
        self.fault = {"pointer": pointer, "code": code, "detail": detail}


class CheckedText(str):
    """A text with a rule that msgspec has no words for: making one of another text raises ValueError."""

    __slots__ = ()


class PrintableText(CheckedText):
    """At most ``longest`` printable characters: PostgreSQL takes no NUL."""

    __slots__ = ()
    longest = 50

    def __new__(cls, said: str) -> Self:
        if len(said) > cls.longest or not said.isprintable():
            raise ValueError(f"At most {cls.longest} printable characters are taken")
        return super().__new__(cls, said)


class Etag(PrintableText):
    """The name of a list that was told before."""

    __slots__ = ()
    longest = 64


class ForeignText(CheckedText):
    """A text that somebody else wrote into VPP: cut at ``longest``, U+FFFD for what cannot be printed.

    Never refused for its characters: one odd tag must not cost a router's whole report.
    """

    __slots__ = ()
    longest = 1000

    def __new__(cls, said: str) -> Self:
        cut = said[: cls.longest]
        return super().__new__(cls, "".join(each if each.isprintable() else "\ufffd" for each in cut))


class ForeignName(ForeignText):
    """The same, of a name in VPP."""

    __slots__ = ()
    longest = 63


class Address(CheckedText):
    """An IP address in canonical form; without a zone, which names an interface of somebody's own machine."""

    __slots__ = ()
    read: Callable[[str], Any] = staticmethod(ip_address)

    def __new__(cls, said: str) -> Self:
        if "%" in said or str(cls.read(said)) != said:
            raise ValueError(f"{said!r} is not in canonical form")
        return super().__new__(cls, said)


class PrefixedAddress(Address):
    """The same with its prefix length."""

    __slots__ = ()
    read = staticmethod(ip_interface)


def reader(kind: type[Document], *, of_others: bool = False) -> Callable[[bytes], Document]:
    """Reads a whole body as such a document. Raises Malformed or Invalid, by the first thing that is wrong.

    ``of_others``: it has texts that somebody else wrote, whose lone surrogates are read as NUL.
    """
    decoder = Decoder(kind, dec_hook=_checked)

    def read(body: bytes) -> Document:
        try:
            return decoder.decode(body)
        except ValidationError as error:
            raise _invalid(str(error)) from error
        except (DecodeError, UnicodeDecodeError, RecursionError) as error:
            whole = _LONE_SURROGATE.sub(lambda escape: escape[1] or rb"\u0000", body) if of_others else body
            if whole != body:
                return read(whole)
            raise Malformed(str(error)) from error

    return read


def require_unique(items: Iterable[Any], member: str, *, at: str) -> None:
    """That no two of the items at this pointer have the same ``member``. Raises Invalid."""
    seen = set()
    for index, item in enumerate(items):
        key = getattr(item, member)
        if key in seen:
            raise Invalid(f"{at}/{index}/{member}", "duplicate", f"{key!r} stands twice")
        seen.add(key)


def _checked(kind: type[CheckedText], said: object) -> CheckedText:
    if not isinstance(said, str):
        raise ValueError(f"Expected a string, got `{type(said).__name__}`")
    return kind(said)


def _invalid(message: str) -> Invalid:
    said, _, path = message.rpartition(" - at `$")
    if not said:
        said, path = message, ""
    pointer = re.sub(r"\[(\d+)\]", r"/\1", path.rstrip("`")).replace(".", "/")
    member = _OF_A_MEMBER.match(said)
    if member is not None:
        # RFC 6901, 3.
        pointer += "/" + member[1].replace("~", "~0").replace("/", "~1")
    code = next((code for begin, code in _CODES if said.startswith(begin)), "type")
    return Invalid(pointer, code, said)
