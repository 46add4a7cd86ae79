"""Strict reading of documents of many numbers, by msgspec; refusals are named as in ``strict_json``."""

import re

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import Decoder

from portal.api.agent.strict_json import Errors, Malformed, Read

# How its messages begin (https://jcristharif.com/msgspec/constraints.html); a test sees each.
_CODES = (
    ("Expected `int` ", "out_of_range"),
    ("Expected `str` ", "out_of_range"),
    ("Expected `array` ", "out_of_range"),
    ("Integer value out of range", "out_of_range"),
    ("Invalid enum value", "unknown_value"),
    ("Object missing required field", "missing"),
    ("Object contains unknown field", "unknown_field"),
)
_OF_A_MEMBER = re.compile(r"Object (?:missing required|contains unknown) field `(.*)`", re.DOTALL)


def struct(kind: type[Struct]) -> Read:
    """Reads a document of this kind. It says the first thing that is wrong, and no more."""
    decoder = Decoder(kind)

    def read(body: bytes, errors: Errors) -> Struct | None:
        try:
            return decoder.decode(body)
        except ValidationError as error:
            _tell(str(error), errors)
            return None
        except (DecodeError, RecursionError) as error:
            raise Malformed(str(error)) from error

    return read


def _tell(message: str, errors: Errors) -> None:
    said, _, path = message.rpartition(" - at `$")
    if not said:
        said, path = message, ""
    pointer = re.sub(r"\[(\d+)\]", r"/\1", path.rstrip("`")).replace(".", "/")
    member = _OF_A_MEMBER.match(said)
    if member is not None:
        # RFC 6901, 3.
        pointer += "/" + member[1].replace("~", "~0").replace("/", "~1")
    code = next((code for begin, code in _CODES if said.startswith(begin)), "type")
    errors.add(pointer, code, said)
