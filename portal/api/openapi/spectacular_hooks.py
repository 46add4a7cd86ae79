"""Taking drf-spectacular's own marks out of the schema."""

from typing import Any

_MARK = "x-spec-enum-id"


def without_marks(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's hook after generation: choices stay where they are used, so nothing needs naming."""
    _strip(result)
    return result


def _strip(part: Any) -> None:
    if isinstance(part, dict):
        part.pop(_MARK, None)
        for inner in part.values():
            _strip(inner)
    elif isinstance(part, list):
        for inner in part:
            _strip(inner)
