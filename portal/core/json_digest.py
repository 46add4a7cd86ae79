"""A short name for a JSON value, by which it is known when it comes again."""

import json
from hashlib import blake2b
from typing import Any


def json_digest(value: Any) -> str:
    """32 hexadecimal digits of the content, however it was spaced."""
    return blake2b(json.dumps(value).encode(), digest_size=16).hexdigest()
