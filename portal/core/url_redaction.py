"""Addresses that hold a secret: whoever reads one may use it, so no log shows it whole."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings


def masked(value: Any) -> Any:
    """``value`` with each address below ``SECRET_ADDRESSES``, and each address's query, cut short by "…".

    Texts are searched wherever they are in mappings and sequences; what is no JSON value becomes its text.
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
