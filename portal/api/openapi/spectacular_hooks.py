"""Hooks of drf-spectacular: the schema in a form that generators of clients can read, and authentication."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class BearerTokenScheme(OpenApiAuthenticationExtension):
    target_class = "portal.api.rest.authentication.BearerTokenAuthentication"
    # Generators of Go clients name a type after this name. "token" would collide with the schema "Token".
    name = "bearerToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API token, such as `ll_0123456789ab_…`; it acts as the user who created it.",
        }


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
