"""The schema and the errors as pages: rendered here, so that they need no script and ask no other host.

They hold no secrets: whoever considers building on the API may read them.
"""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.api.error_catalogue import entries
from portal.api.openapi.document import RULES, document
from portal.core.view_permission import public

_METHODS = ("get", "post", "put", "patch", "delete")


@public
def docs(request: HttpRequest) -> HttpResponse:
    """``GET /api/docs/``: every operation with its parameters, bodies, answers and examples."""
    schema = document()
    return render(request, "api/docs.html", {"rules": RULES, "areas": areas(schema)})


@public
def errors(request: HttpRequest) -> HttpResponse:
    """``GET /api/docs/errors/``: an entry for every ``type`` of a problem document."""
    return render(request, "api/errors.html", {"entries": entries()})


def areas(schema: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The operations by their tag, each as the template shows it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, item in schema["paths"].items():
        for method in (method for method in _METHODS if method in item):
            operation = item[method]
            found.setdefault(operation["tags"][0], []).append(_shown(path, method, operation, schema))
    return found


def _shown(path: str, method: str, operation: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": operation.get("summary", ""),
        "description": operation.get("description", ""),
        "parameters": [_parameter(one) for one in operation.get("parameters", [])],
        "body": _body(operation.get("requestBody", {}), schema),
        "answers": [{"status": status, **_body(answer, schema)} for status, answer in _answers(operation)],
    }


def _answers(operation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return sorted(operation["responses"].items())


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    schema = parameter["schema"]
    return {
        "name": parameter["name"],
        "place": parameter["in"],
        "required": parameter.get("required", False),
        "kind": _kind(schema),
        "description": parameter.get("description") or schema.get("description", ""),
    }


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words: ``string (uuid)``, ``integer 1 … 4094``, ``a | z``."""
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if choices := schema.get("oneOf", schema.get("anyOf")):
        return " or ".join(_kind(choice) for choice in choices)
    kinds = schema.get("type", "any")
    text = kinds if isinstance(kinds, str) else " or ".join(kinds)
    if "format" in schema:
        text += f" ({schema['format']})"
    if "minimum" in schema and "maximum" in schema:
        text += f" {schema['minimum']} … {schema['maximum']}"
    return text


def _body(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    contents: dict[str, dict[str, Any]] = part.get("content", {})
    media_type, media = next(iter(contents.items()), ("", {}))
    example = media.get("example")
    return {
        "description": part.get("description", ""),
        "media_type": media_type,
        "members": _members(media.get("schema", {}), schema),
        "example": json.dumps(example, indent=2, ensure_ascii=False) if media else "",
    }


def _members(part: dict[str, Any], schema: dict[str, Any], prefix: str = "") -> list[dict[str, Any]]:
    """The members of an object, those of objects within it after them with dotted names."""
    part = _resolved(part, schema)
    rows = []
    for name, inner in part.get("properties", {}).items():
        resolved = _resolved(inner, schema)
        rows.append(
            {
                "name": f"{prefix}{name}",
                "kind": _kind(resolved),
                "required": name in part.get("required", []),
                "description": resolved.get("description", ""),
            }
        )
        within = _resolved(resolved.get("items", {}), schema) if resolved.get("type") == "array" else resolved
        mark = "[]" if resolved.get("type") == "array" else ""
        rows += _members(within, schema, f"{prefix}{name}{mark}.")
    return rows


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    bases: list[dict[str, Any]] = part.get("allOf", [])
    reference = part.get("$ref") or (bases[0].get("$ref") if bases else None)
    if reference is None:
        return part
    found: dict[str, Any] = schema["components"]["schemas"][reference.rsplit("/", 1)[-1]]
    return found
