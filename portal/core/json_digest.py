"""A short digest of a JSON value, to recognise a repeated value."""

from hashlib import blake2b
from typing import Any

from msgspec import json


def json_digest(value: Any) -> str:
    """Return 32 hexadecimal digits of the content, regardless of white space."""
    return blake2b(json.encode(value, enc_hook=_text), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    """Return subclasses of str as text, because msgspec refuses them. Nothing else has a digest."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(type(value).__name__)
