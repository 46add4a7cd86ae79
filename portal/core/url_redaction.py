"""Redaction of URLs that contain a secret. Anybody who reads such a URL could use it, so logs shorten it."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings


def masked(value: Any) -> Any:
    """Return ``value`` with secrets in URLs replaced by "…".

    Secrets are the rest of a path after one of ``SECRET_ADDRESSES``, and the query of any URL. Mappings and
    sequences are searched recursively. Values of other types than JSON's are converted to text.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: masked(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked(each) for each in value]
    return _secrets().sub(r"\g<shown>…", value if isinstance(value, str) else repr(value))


@cache
def _secrets() -> re.Pattern[str]:
    below = "|".join(map(re.escape, settings.SECRET_ADDRESSES))
    query = r"""/[^\s"'<>?]*\?"""
    return re.compile(rf"""(?P<shown>{below}|{query})[^\s"'<>]+""")
