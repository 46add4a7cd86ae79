"""A short digest of a JSON value, to detect that a value is unchanged."""

from hashlib import blake2b
from typing import Any

from msgspec import json


def json_digest(value: Any) -> str:
    """Return a digest of 32 hexadecimal digits of a JSON value, given as Python objects."""
    return blake2b(json.encode(value, enc_hook=_text), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    """Return an instance of a subclass of str as a str, because msgspec refuses it. Refuse other types."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(type(value).__name__)
