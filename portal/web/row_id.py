"""The id of a row, as somebody may have sent it."""

from typing import Any

_LARGEST = 2**63 - 1


def row_id(text: Any) -> int | None:
    """The id, or None for what cannot be one."""
    digits = str(text or "")
    return int(digits) if digits.isascii() and digits.isdigit() and int(digits[:20]) <= _LARGEST else None
