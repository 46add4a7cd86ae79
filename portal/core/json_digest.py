"""A short name for a JSON value, by which it is known when it comes again."""

from hashlib import blake2b
from typing import Any

from msgspec import json


def json_digest(value: Any) -> str:
    """32 hexadecimal digits of the content, however it was spaced."""
    return blake2b(json.encode(value, enc_hook=_text), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    """For subclasses of str, which msgspec does not take by itself; nothing else has a digest."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(type(value).__name__)
