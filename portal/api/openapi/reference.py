"""The API reference: HTML pages with the operations of the schema, and with the errors.

The portal renders the pages, and they load nothing from other hosts. The pages contain no secrets and are
public: people may read them before they have an account. ADR 88 has the reasons for own templates.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.utils.translation import get_language, gettext

from portal.api.openapi.document import FOR_EVERYBODY, FOR_THE_NOC, GROUPS, RULES, Group, document
from portal.api.openapi.examples import LANGUAGES, ExampleRequest, examples
from portal.api.openapi.members import component_of, members, parameter
from portal.api.problem_details import entries
from portal.core.http import absolute_url, public

METHODS = ("get", "post", "put", "patch", "delete")
# An operation of the schema, with its method and path. Its operationId is its fragment in the address of its
# group's page, and never changes.
Operation = dict[str, Any]
_PLACES = ("path", "query", "header")
_VERBATIM = re.compile(r"(<pre\b.*?</pre>|<textarea\b.*?</textarea>)", re.DOTALL)
_INDENTED = re.compile(r"\s*\n\s*")


@public
def index(request: HttpRequest) -> HttpResponse:
    """Show ``GET /api/docs/``: the rules for all requests, and a list of operations.

    If the query parameter ``q`` is given, the list contains only the operations that match it.
    """
    query = request.GET.get("q", "").strip()[:100]
    sections = [(gettext("For everybody"), FOR_EVERYBODY), (gettext("For NOC staff"), FOR_THE_NOC)]
    found = [(title, _matching(groups, query)) for title, groups in sections]
    first = next(each for each in operations()["lines"] if each["operationId"] == "vlls_list")
    return render(
        request,
        "api/index.html",
        {
            "rules": RULES,
            "languages": LANGUAGES,
            "first_request": examples(example_request(first, absolute_url(""))),
            "problems": _problems_of_all(),
            "searched": query,
            "sections": [(title, groups) for title, groups in found if groups],
        },
    )


@public
def group(request: HttpRequest, group: str) -> HttpResponse:
    """Show ``GET /api/docs/<group>/``: operations with parameters, bodies, responses, errors and examples."""
    if group not in GROUPS:
        raise Http404
    signed_in = request.user.is_authenticated
    context = {
        "group": GROUPS[group],
        "operations": operations()[group],
        "details": _rendered(group, get_language() or "", absolute_url(""), signed_in),
        "groups": GROUPS.values(),
    }
    return render(request, "api/group.html", context)


@public
def errors(request: HttpRequest) -> HttpResponse:
    """Show ``GET /api/docs/errors/``: an entry for every ``type`` of a problem document."""
    return render(request, "api/errors.html", {"entries": entries()})


@cache
def operations() -> dict[str, list[Operation]]:
    """Return the operations of each group, in the order of the group's tags, keyed by the group's slug."""
    found: dict[str, list[Operation]] = {}
    for slug, group in GROUPS.items():
        of_group = [each for each in _all() if each["tags"][0] in group.tags]
        found[slug] = sorted(of_group, key=lambda each: group.tags.index(each["tags"][0]))
    return found


def example_request(operation: Operation, base_url: str) -> ExampleRequest:
    """Return the example request of an operation to ``base_url``, an address without a final slash."""
    given = {each["name"]: each for each in operation.get("parameters", [])}
    path = operation["path"]
    for name, each in given.items():
        if each["in"] == "path":
            path = path.replace(f"{{{name}}}", str(each["example"]))
    return ExampleRequest(
        method=operation["method"],
        url=f"{base_url}{path}",
        body=_content(operation.get("requestBody", {}))[1].get("example"),
        if_match=given.get("If-Match", {}).get("example", ""),
        drawn_key="Idempotency-Key" in given,
        signed=_scopes(operation) is not None,
        response_type=_content(_successes(operation)[0][1])[0],
    )


def _matching(groups: tuple[Group, ...], query: str) -> list[tuple[Group, list[Operation]]]:
    """Return the groups that have a matching operation, each with its matching operations.

    An operation matches if method, path, id, summary and group's title contain all words of the query.
    """
    words = query.lower().split()
    found = []
    for each in groups:
        kept = [
            operation
            for operation in operations()[each.slug]
            if all(word in _searched(operation, each) for word in words)
        ]
        if kept:
            found.append((each, kept))
    return found


def _searched(operation: Operation, group: Group) -> str:
    named = (operation[name] for name in ("method", "path", "operationId", "summary"))
    return " ".join([*named, gettext(group.title)]).lower()


@cache
def _rendered(slug: str, language: str, base_url: str, signed_in: bool) -> str:
    """Return a group's operations, and the objects that their responses contain, as HTML.

    The result is cached. It has no indentation, which would be a quarter of the page. Verbatim texts, such as
    examples, keep their indentation. ``signed_in``: whether to add forms that send requests.
    """
    components = document()["components"]["schemas"]
    shared = _shared(operations()[slug], components)
    context = {
        "operations": [_details(each, shared, base_url) for each in operations()[slug]],
        "components": [
            {
                "name": name,
                "description": components[name].get("description", ""),
                "members": members(components[name], components, response=True),
            }
            for name in shared
        ],
        "languages": LANGUAGES,
        "signed_in": signed_in,
    }
    parts = _VERBATIM.split(render_to_string("api/_operations.html", context))
    return mark_safe(  # noqa: S308 - escaped by the template
        "".join(part if _VERBATIM.match(part) else _INDENTED.sub("\n", part) for part in parts)
    )


def _details(operation: Operation, shared: list[str], base_url: str) -> dict[str, Any]:
    """Return an operation as its template shows it, in the reader's language.

    * ``scopes``: alternative lists of scopes. A token needs all scopes of one list. None: no token is needed.
    * ``body``: the example for the editor; "" for an operation without a body.
    * ``examples``: the example of a request in each language.
    """
    components = document()["components"]["schemas"]
    scopes = _scopes(operation)
    body = _content(operation.get("requestBody", {}))[1]
    parameters = [
        {"member": parameter(given), "place": given["in"], "example": given.get("example", "")}
        for given in operation.get("parameters", [])
    ]
    return {
        **operation,
        "scopes": scopes,
        # Operations that need no scope only read.
        "changes_something": operation["method"] != "GET" and scopes != [[]],
        "parameters": sorted(
            parameters, key=lambda each: (_PLACES.index(each["place"]), not each["member"].required)
        ),
        "members": list(members(body.get("schema", {}), components, response=False)),
        "body": _example(body),
        "answers": [_answer(*each, shared) for each in _successes(operation)],
        "problems": [each for each in _problems(operation) if each not in _problems_of_all()],
        "examples": examples(example_request(operation, base_url)),
    }


def _answer(status: str, response: dict[str, Any], shared: list[str]) -> dict[str, Any]:
    """Return the success response. ``component``: its object's name, if the page describes it separately."""
    components = document()["components"]["schemas"]
    media = _content(response)[1]
    schema = media.get("schema", {})
    component = component_of(schema)
    separate = component in shared
    return {
        "status": status,
        "description": response.get("description", ""),
        "headers": list(response.get("headers", {})),
        "component": component if separate else "",
        "members": [] if separate else list(members(schema, components, response=True)),
        "example": _example(media),
    }


@cache
def _problems_of_all() -> list[dict[str, str]]:
    """Return the problems that can occur in every operation."""
    each = [_problems(operation) for operation in _all()]
    return [problem for problem in each[0] if all(problem in those for those in each)]


def _problems(operation: Operation) -> list[dict[str, str]]:
    """Return each response for failure: its status, its meaning, and one of the codes with this status."""
    return [
        {
            "status": status,
            "meaning": response["description"],
            "code": _content(response)[1]["example"]["type"].partition("#")[2],
        }
        for status, response in sorted(operation["responses"].items())
        if status >= "400"
    ]


def _all() -> Iterator[Operation]:
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                yield {**item[method], "method": method.upper(), "path": path}


def _scopes(operation: Operation) -> list[list[str]] | None:
    return [scopes for choice in operation["security"] for scopes in choice.values()] or None


def _successes(operation: Operation) -> list[tuple[str, dict[str, Any]]]:
    return sorted(each for each in operation["responses"].items() if each[0] < "400")


def _content(part: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the media type and the content of a body or response."""
    return next(iter(part.get("content", {}).items()), ("", {}))


def _example(media: dict[str, Any]) -> str:
    example = media.get("example", "")
    return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _shared(operations: list[Operation], components: dict[str, Any]) -> list[str]:
    """Return the names of components that the page describes separately.

    The page describes two kinds of components separately: objects inside responses, and objects that are the
    whole body of several responses.
    """
    responses = [
        _content(response)[1].get("schema", {}) for each in operations for _, response in _successes(each)
    ]
    whole = Counter(component_of(schema) for schema in responses)
    unread = [each.component for schema in responses for each in members(schema, components, response=True)]
    within: set[str] = set()
    while unread:
        name = unread.pop()
        if name and name not in within:
            within.add(name)
            unread += [each.component for each in members(components[name], components, response=True)]
    return sorted(within | {name for name, count in whole.items() if name and count > 1})
