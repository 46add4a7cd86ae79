"""Strict reading of JSON into msgspec's structs. Errors contain the place in the document and the reason."""

import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from ipaddress import ip_address, ip_interface
from typing import Annotated, Any, Self, TypeVar

from msgspec import DecodeError, Meta, ValidationError, json
from msgspec.json import Decoder


def json_digest(value: Any) -> str:
    """Return a digest of 32 hexadecimal digits of a JSON value, given as Python objects."""
    return blake2b(json.encode(value, enc_hook=_text), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    """Return an instance of a subclass of str as a str, because msgspec refuses it. Refuse other types."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(type(value).__name__)


Document = TypeVar("Document")

# The codes of errors, by the beginning of the message. Messages come from msgspec
# (https://jcristharif.com/msgspec/constraints.html) or from this module. A test covers each beginning.
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
# Matches a lone surrogate, which is not text (RFC 8259, 8.2). Pairs and other escapes match the group, so
# that they can be kept.
_LONE_SURROGATE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u])|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

# A UUID in lower case with dashes, as text.
Uuid = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
# Counters and rates in bit/s: whole numbers that JavaScript represents exactly.
Natural53 = Annotated[int, Meta(ge=0, le=2**53)]
# Milliseconds since the epoch, for values stored as a time. Python's calendar ends with the year 9999.
EpochMs = Annotated[int, Meta(ge=0, lt=253_370_764_800_000)]
# The ranges of PostgreSQL's integer and bigint.
Integer31 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Natural31 = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Positive31 = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Natural63 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive63 = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class Malformed(ValueError):
    """The body is not JSON."""


class Invalid(Exception):
    """The document does not match its schema. ``fault`` has ``pointer`` (RFC 6901), ``code``, ``detail``."""

    def __init__(self, pointer: str, code: str, detail: str) -> None:
        super().__init__(f"{pointer or '/'}: {detail}")
        self.fault = {"pointer": pointer, "code": code, "detail": detail}


class CheckedText(str):
    """A text with a rule that msgspec cannot express. Invalid texts raise ValueError."""

    __slots__ = ()


class PrintableText(CheckedText):
    """A text of at most ``longest`` printable characters, without NUL, which PostgreSQL cannot store."""

    __slots__ = ()
    longest = 50

    def __new__(cls, text: str) -> Self:
        if len(text) > cls.longest or not text.isprintable():
            raise ValueError(f"At most {cls.longest} printable characters are taken")
        return super().__new__(cls, text)


class Etag(PrintableText):
    """The identifier of a list in an earlier report."""

    __slots__ = ()
    longest = 64


class ForeignText(CheckedText):
    """A text from VPP that the portal did not write.

    It is cut at ``longest`` characters, and U+FFFD replaces unprintable characters. It is never refused for
    its characters, because one strange tag in VPP must not make a router's whole report invalid.
    """

    __slots__ = ()
    longest = 1000

    def __new__(cls, text: str) -> Self:
        cut = text[: cls.longest]
        return super().__new__(cls, "".join(each if each.isprintable() else "\ufffd" for each in cut))


class ForeignName(ForeignText):
    """The name of a VPP object that the portal does not manage."""

    __slots__ = ()
    longest = 63


class Address(CheckedText):
    """An IP address in canonical form. It has no zone, because zones are only meaningful on one machine."""

    __slots__ = ()
    read: Callable[[str], Any] = staticmethod(ip_address)

    def __new__(cls, text: str) -> Self:
        if "%" in text or str(cls.read(text)) != text:
            raise ValueError(f"{text!r} is not in canonical form")
        return super().__new__(cls, text)


class PrefixedAddress(Address):
    """An IP address with its prefix length."""

    __slots__ = ()
    read = staticmethod(ip_interface)


def reader(kind: type[Document], *, of_others: bool = False) -> Callable[[bytes], Document]:
    """Return a function that reads a body as a document of type ``kind``.

    The function raises Malformed, or Invalid for the first fault. ``of_others``: whether the document
    contains texts that the portal and its agents did not write. Lone surrogates in such a document are read
    as NUL.
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
    """Raise Invalid if two items have the same ``member``. ``at``: the JSON pointer to the items."""
    found = set()
    for index, item in enumerate(items):
        key = getattr(item, member)
        if key in found:
            raise Invalid(f"{at}/{index}/{member}", "duplicate", f"{key!r} occurs twice")
        found.add(key)


def _checked(kind: type[CheckedText], text: object) -> CheckedText:
    if not isinstance(text, str):
        raise ValueError(f"Expected a string, got `{type(text).__name__}`")
    return kind(text)


def _invalid(message: str) -> Invalid:
    text, _, path = message.rpartition(" - at `$")
    if not text:
        text, path = message, ""
    pointer = re.sub(r"\[(\d+)\]", r"/\1", path.rstrip("`")).replace(".", "/")
    member = _OF_A_MEMBER.match(text)
    if member is not None:
        # Escaped as RFC 6901, section 3, requires.
        pointer += "/" + member[1].replace("~", "~0").replace("/", "~1")
    code = next((code for begin, code in _CODES if text.startswith(begin)), "type")
    return Invalid(pointer, code, text)
