"""Reading of a row's id from a request."""

from typing import Any

from portal.core.whole_number import whole_number

_LARGEST = 2**63 - 1


def row_id(text: Any) -> int | None:
    """Return the id in a text; None if the text is not an id."""
    return whole_number(str(text or ""), most=_LARGEST)
