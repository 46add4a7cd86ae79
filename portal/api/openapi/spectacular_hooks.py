"""Rewrite drf-spectacular's schema so that generators of clients can read it."""

from typing import Any

_MARK = "x-spec-enum-id"


def readable_by_generators(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Rewrite the generated schema. drf-spectacular calls this after generation.

    The marks that drf-spectacular adds to enumerations are removed, so that choices stay where they are used
    and need no names. A choice between two kinds of text becomes a single text, because generators cannot
    distinguish the two kinds by their type.
    """
    _rewrite(result)
    return result


def _rewrite(part: Any) -> None:
    if isinstance(part, dict):
        part.pop(_MARK, None)
        if _only_texts(part.get("oneOf")):
            choices = part.pop("oneOf")
            part["type"] = "string"
            part["maxLength"] = max(choice["maxLength"] for choice in choices)
        for inner in part.values():
            _rewrite(inner)
    elif isinstance(part, list):
        for inner in part:
            _rewrite(inner)


def _only_texts(choices: Any) -> bool:
    """Return whether all choices are texts of limited length, for example an address or ""."""
    return isinstance(choices, list) and all(
        isinstance(choice, dict) and choice.get("type") == "string" and "maxLength" in choice
        for choice in choices
    )
