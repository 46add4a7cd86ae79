"""The schema's operations as the documentation shows them."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from portal.api.openapi.document import document
from portal.api.openapi.groups import GROUPS, Group
from portal.api.openapi.members import Member, Schema, component_of, flat, linked, parameter, resolved
from portal.api.openapi.request_examples import ExampleRequest, examples

METHODS = ("get", "post", "put", "patch", "delete")
_PLACES = ("path", "query", "header")


@dataclass(frozen=True, slots=True)
class OperationName:
    """The name of an operation. ``id``: the fragment in the address of its group's page. It never changes.

    ``deprecated``: another operation replaces this one.
    """

    id: str
    method: str
    path: str
    summary: str
    deprecated: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter. ``place`` is path, query or header. ``example`` is "" if no example exists."""

    member: Member
    place: str
    example: str


@dataclass(frozen=True, slots=True)
class Response:
    """A response for success. ``component`` is the name of its object if the page describes the object
    separately.
    """

    status: str
    description: str
    headers: list[str]
    component: str
    members: list[Member]
    example: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A response for failure: its status, and one of the codes that have this status."""

    status: str
    meaning: str
    code: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with everything that its page shows.

    * ``scopes``: alternative lists of scopes. A token needs all scopes of one list. None: no token is needed.
    * ``body``: the example for the editor; "" for an operation without a body.
    * ``examples``: the example of a request in each language.
    """

    name: OperationName
    description: str
    scopes: list[list[str]] | None
    parameters: list[Parameter]
    members: list[Member]
    body: str
    responses: list[Response]
    problems: list[Problem]
    examples: dict[str, str]

    @property
    def changes_something(self) -> bool:
        """Whether a request changes something. Operations that need no scope only read."""
        return self.name.method != "GET" and self.scopes != [[]]


@dataclass(frozen=True, slots=True)
class Component:
    """An object that the page describes once, because responses refer to it by name."""

    name: str
    description: str
    members: list[Member]


@cache
def names() -> dict[str, list[OperationName]]:
    """Return the names of each group's operations, keyed by the group's slug."""
    return {slug: [_name(*entry) for entry in _of(group)] for slug, group in GROUPS.items()}


def operations(group: Group, base_url: str) -> tuple[list[Operation], list[Component]]:
    """Return the operations of a group, and the objects in their responses, in the reader's language.

    The examples send their requests to ``base_url``, an address without a final slash.
    """
    schema = document()
    components: dict[str, Schema] = schema["components"]["schemas"]
    entries = _of(group)
    shared = _shared([operation for _, _, operation in entries], components)
    common = problems_of_all()
    shown = [
        Operation(
            name=_name(path, method, operation),
            description=operation.get("description", ""),
            scopes=_scopes(operation),
            parameters=_parameters(operation),
            members=list(flat(_content(operation.get("requestBody", {}))[1].get("schema", {}), components)),
            body=_example(operation.get("requestBody", {})),
            responses=[
                _response(status, response, shared, components)
                for status, response in _responses(operation)
                if status < "400"
            ],
            problems=[each for each in _problems(operation) if each not in common],
            examples=examples(_request(path, method, operation, base_url)),
        )
        for path, method, operation in entries
    ]
    return shown, [_component(name, components) for name in shared]


@cache
def problems_of_all() -> list[Problem]:
    """Return the problems that can occur in every operation."""
    each = [_problems(operation) for _, _, operation in _all()]
    return [problem for problem in each[0] if all(problem in those for those in each)]


def _all() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def _of(group: Group) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (path, method, operation) for each operation of the group, in the order of the group's tags."""
    entries = [entry for entry in _all() if entry[2]["tags"][0] in group.tags]
    return sorted(entries, key=lambda entry: group.tags.index(entry[2]["tags"][0]))


def _name(path: str, method: str, operation: dict[str, Any]) -> OperationName:
    return OperationName(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        deprecated=operation.get("deprecated", False),
    )


def _scopes(operation: dict[str, Any]) -> list[list[str]] | None:
    choices = [scopes for choice in operation["security"] for scopes in choice.values()]
    return choices or None


def _parameters(operation: dict[str, Any]) -> list[Parameter]:
    found = [
        Parameter(parameter(given), given["in"], str(given.get("example", "")))
        for given in operation.get("parameters", [])
    ]
    return sorted(found, key=lambda each: (_PLACES.index(each.place), not each.member.required))


def _content(part: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    contents: dict[str, dict[str, Any]] = part.get("content", {})
    return next(iter(contents.items()), ("", {}))


def _example(part: dict[str, Any]) -> str:
    _, media = _content(part)
    if "example" not in media:
        return ""
    example = media["example"]
    return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _responses(operation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return sorted(operation["responses"].items())


def _response(
    status: str, response: dict[str, Any], shared: list[str], components: dict[str, Schema]
) -> Response:
    _, media = _content(response)
    schema = media.get("schema", {})
    component = component_of(schema)
    whole = component if component in shared else ""
    return Response(
        status=status,
        description=response.get("description", ""),
        headers=list(response.get("headers", {})),
        component=whole,
        members=[] if whole else list(linked(resolved(schema, components), components)),
        example=_example(response),
    )


def _problems(operation: dict[str, Any]) -> list[Problem]:
    return [
        Problem(status, response["description"], _content(response)[1]["example"]["type"].partition("#")[2])
        for status, response in _responses(operation)
        if status >= "400"
    ]


def _shared(operations: list[dict[str, Any]], components: dict[str, Schema]) -> list[str]:
    """Return the names of components that the page describes separately.

    The page describes two kinds of components separately: objects inside responses, and objects that are the
    whole body of several responses.
    """
    responses = [
        _content(response)[1].get("schema", {})
        for operation in operations
        for status, response in _responses(operation)
        if status < "400"
    ]
    whole = Counter(component_of(schema) for schema in responses)
    unread = [
        each.component for schema in responses for each in linked(resolved(schema, components), components)
    ]
    within: set[str] = set()
    while unread:
        name = unread.pop()
        if name and name not in within:
            within.add(name)
            unread += [each.component for each in linked(components[name], components)]
    return sorted(within | {name for name, count in whole.items() if name and count > 1})


def _component(name: str, components: dict[str, Schema]) -> Component:
    schema = components[name]
    return Component(name, schema.get("description", ""), list(linked(schema, components)))


def _request(path: str, method: str, operation: dict[str, Any], base_url: str) -> ExampleRequest:
    given = {each["name"]: each for each in operation.get("parameters", [])}
    for name, each in given.items():
        if each["in"] == "path":
            path = path.replace(f"{{{name}}}", str(each["example"]))
    response = next(response for status, response in _responses(operation) if status < "300")
    _, media = _content(operation.get("requestBody", {}))
    return ExampleRequest(
        method=method.upper(),
        url=f"{base_url}{path}",
        body=media.get("example"),
        if_match=given.get("If-Match", {}).get("example", ""),
        drawn_key="Idempotency-Key" in given,
        signed=_scopes(operation) is not None,
        response_type=_content(response)[0],
    )
