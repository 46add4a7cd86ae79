"""The members of bodies, and the parameters, as the documentation shows them: type and limits in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.api.rest.request_bodies import MAX_SAFE_INTEGER

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a body, or a parameter.

    ``component``: the name of the object if the page describes the value separately; else "".
    """

    name: str
    kind: str
    limits: str
    required: bool
    description: str
    component: str = ""


def component_of(schema: Schema) -> str:
    """Return the name of the component that a schema refers to, or "" if it refers to none.

    The schema may also be an array of a component, or a choice between a component and null.
    """
    for part in (schema, *schema.get("allOf", []), *schema.get("oneOf", []), schema.get("items", {})):
        if "$ref" in part:
            return str(part["$ref"].rsplit("/", 1)[-1])
    return ""


def resolved(schema: Schema, components: dict[str, Schema]) -> Schema:
    """Return the component that the schema refers to. If the schema is an array or refers to no component,
    return the schema itself.
    """
    if "items" in schema or not (name := component_of(schema)):
        return schema
    return components[name]


def members(
    schema: Schema, components: dict[str, Schema], *, response: bool, prefix: str = ""
) -> Iterator[Member]:
    """Yield the members of the body of a request or response.

    The members of a nested object follow the object. Their names begin with the name of the object and a dot.
    In a response, a member that is a component is not expanded: its field ``component`` has the component's
    name. Only members of requests have limits and can be required.
    """
    schema = resolved(schema, components)
    for name, part in schema.get("properties", {}).items():
        inner = resolved(part, components)
        component = component_of(part) if response else ""
        required = not response and name in schema.get("required", [])
        yield _member(
            f"{prefix}{name}", part, inner, required=required, limited=not response, component=component
        )
        if not component:
            yield from members(inner, components, response=response, prefix=f"{prefix}{name}.")
            if "items" in inner:
                yield from members(inner["items"], components, response=response, prefix=f"{prefix}{name}[].")


def parameter(given: dict[str, Any]) -> Member:
    """Return a parameter of an operation as a Member."""
    described = {"description": given.get("description", ""), **given["schema"]}
    return _member(
        given["name"], described, given["schema"], required=given.get("required", False), limited=True
    )


def kind(schema: Schema) -> str:
    """Return the type of a schema in a few words: ``string (uuid)``, ``array of integer``, ``a | z``."""
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if choices := schema.get("oneOf", schema.get("anyOf")):
        return " or ".join(_choice(choice) for choice in choices)
    if name := component_of(schema):
        return f"array of {name}" if "items" in schema else name
    if "const" in schema:
        return str(schema["const"])
    if "items" in schema:
        return f"array of {kind(schema['items'])}"
    kinds = schema.get("type", "any")
    text = kinds if isinstance(kinds, str) else " or ".join(kinds)
    return f"{text} ({schema['format']})" if "format" in schema and schema["format"] != "int64" else text


def _choice(schema: Schema) -> str:
    text = " | ".join(f'"{value}"' for value in schema["enum"]) if "enum" in schema else kind(schema)
    # The page shows the description of a choice only here.
    return f"{text} ({schema['description']})" if "description" in schema else text


def limits(schema: Schema) -> str:
    """Return the limits of a value, in words."""
    low, high = schema.get("minimum"), schema.get("maximum", MAX_SAFE_INTEGER)
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    phrases = []
    if low is not None and high < MAX_SAFE_INTEGER:
        phrases.append(_("from %(low)s to %(high)s") % {"low": low, "high": high})
    elif low is not None:
        phrases.append(_("at least %(low)s") % {"low": low})
    if most:
        phrases.append(
            ngettext("at most %(most)s character", "at most %(most)s characters", most) % {"most": most}
        )
    if least > 1:
        phrases.append(
            ngettext("at least %(least)s character", "at least %(least)s characters", least)
            % {"least": least}
        )
    elif least and "enum" not in schema:
        phrases.append(_("not empty"))
    if pattern := schema.get("pattern"):
        phrases.append(_("matching `%(pattern)s`") % {"pattern": pattern})
    if count := schema.get("maxItems"):
        phrases.append(
            ngettext("at most %(count)s entry", "at most %(count)s entries", count) % {"count": count}
        )
    if "default" in schema and schema["default"] != "":
        phrases.append(_("`%(value)s` if left out") % {"value": _as_json(schema["default"])})
    return ", ".join(phrases)


def _as_json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _member(
    name: str,
    part: Schema,
    inner: Schema,
    *,
    required: bool = False,
    limited: bool = False,
    component: str = "",
) -> Member:
    described = part.get("description") or ("" if component else inner.get("description", ""))
    within = component_of(part) and not component
    return Member(
        name=name,
        kind="object" if within and inner.get("type") == "object" and "items" not in part else kind(part),
        limits=limits(part) if limited else "",
        required=required,
        description="" if described == "null" else described,
        component=component,
    )
